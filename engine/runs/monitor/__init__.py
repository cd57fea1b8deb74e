"""A watched run: its log and samples compared with its prediction."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
