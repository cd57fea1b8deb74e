"""Running and past runs, as files that any other process can follow."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
