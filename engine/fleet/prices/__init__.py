"""Prices as lists: of instances, fetched anew on request, and of data that is held or moved."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
