"""What the user wants: the plan, its sections and its fields."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
