"""Loads of a replica: requests that come one by one, wait, run beside each other and end."""
