"""Databases that hold patterns: how fast they are here, and what they take on disk."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
