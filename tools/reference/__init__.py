"""Writes what the documentation takes from the program itself: plan file, commands, schemas, manual, completion."""
