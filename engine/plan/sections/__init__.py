"""The sections of a plan that are large enough for a file of their own."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
