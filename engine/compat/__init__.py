"""Names and classes of the documents that the program follows, as aliases of what it has under names of its own."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
