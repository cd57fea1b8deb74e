"""How growth is told: laws, what they say of other sizes, and settings that were ranked."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
