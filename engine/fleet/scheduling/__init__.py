"""Jobs with deadlines on a fleet: in which order, on which machines, how late, how far from the best."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
