"""Devices and the links between them, as estimates need them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
