"""How Intel accelerators are found and read."""
