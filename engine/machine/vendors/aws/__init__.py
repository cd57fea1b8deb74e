"""How AWS accelerators are found and read."""
