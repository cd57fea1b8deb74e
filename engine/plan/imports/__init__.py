"""Configurations written for other tools, read as plans."""
