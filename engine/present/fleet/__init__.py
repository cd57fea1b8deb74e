"""Answers about machines and fleets as texts that people and programs read."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
