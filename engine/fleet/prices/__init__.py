"""Prices as lists: of instances, fetched anew on request, and of data that is held or moved."""
