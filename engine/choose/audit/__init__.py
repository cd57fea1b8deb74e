"""What configurations of other tools will do, and what is wrong with them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
