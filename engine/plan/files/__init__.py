"""Plans as files: loading, every fault of a file at once, saving."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
