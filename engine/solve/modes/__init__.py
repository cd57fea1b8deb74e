"""Conservative, balanced and extreme: what fills the settings that a plan leaves open."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
