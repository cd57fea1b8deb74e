"""The space of configurations, and its evaluation: arrays from end to end."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
