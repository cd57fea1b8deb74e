"""What a row of each table says; every field is read by code or marked informational."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
