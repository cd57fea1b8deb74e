"""Configurations written for other tools, read as plans."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
