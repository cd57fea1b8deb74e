"""Commands that need no screen: estimates, checks, lists and files, for scripts and for people in a hurry."""
