"""Moving a job to other machines: what it reaches there, what that costs and takes, and whether it is worth it."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
