"""The JSON files of the fleet guide, read as they are and laid over the catalogue like the user's own YAML."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
