"""Runs that are guarded: trouble recognised, answered by a bounded change of the plan, and started again."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
