"""What to change, and what to mind."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
