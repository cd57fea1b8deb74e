"""Where a figure comes from."""
