"""Colour themes, one YAML file each."""
