"""Communication between a trainer and its guard through a callback."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
