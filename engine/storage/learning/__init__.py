"""Learning patterns: what holds it up on a machine, and the names of its guide over the answers of this program."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
