"""How Apple accelerators are found and read."""
