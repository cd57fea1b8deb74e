"""The nodes of a cluster that people already have: reached, listed, measured and given work through what runs there."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
