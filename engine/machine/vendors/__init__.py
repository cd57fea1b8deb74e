"""Accelerators, one folder a vendor."""
