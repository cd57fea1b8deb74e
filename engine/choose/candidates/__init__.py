"""Changes of a plan, each filled, estimated and held against limits as planning it would."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
