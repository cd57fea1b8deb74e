"""Models read from the files of other programs."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
