"""How Habana accelerators are found and read."""
