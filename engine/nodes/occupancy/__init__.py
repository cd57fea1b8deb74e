"""What the devices of a cluster do now: planned, free, busy or down; node by node, folded where there are many."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
