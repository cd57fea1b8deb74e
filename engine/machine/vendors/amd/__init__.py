"""How AMD accelerators are found and read."""
