"""Pages and schemas of plan files and catalogues, made of the metadata of their fields."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
