"""The history of runs: what was predicted, what was measured, on which machine, kept for later."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
