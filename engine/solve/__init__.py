"""Which configuration to run."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
