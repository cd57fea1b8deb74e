"""How Google accelerators are found and read."""
