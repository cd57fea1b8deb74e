"""Searching: every configuration that a question leaves open, evaluated as arrays, and the best of them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
