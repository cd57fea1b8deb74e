"""Runs as they happen: sampling of processes and devices, logs, foresight, and the history of runs."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
