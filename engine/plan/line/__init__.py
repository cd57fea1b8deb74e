"""The one line that says a plan, as the start prompt and the command line take it."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
