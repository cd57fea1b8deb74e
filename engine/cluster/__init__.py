"""Devices and the links between them, as estimates need them."""
