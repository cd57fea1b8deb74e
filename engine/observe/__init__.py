"""Runs as they happen: processes and devices, logs, monitoring, guarding, profiling, and the history of runs."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
