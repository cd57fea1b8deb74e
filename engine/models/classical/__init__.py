"""Classical algorithms: what a plan says about one."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
