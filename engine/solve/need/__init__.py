"""Questions asked backwards: which value of a field keeps the limits."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
