"""Published measurements, and how well the estimates meet them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
