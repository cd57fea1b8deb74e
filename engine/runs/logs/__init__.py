"""Logs of runs: figures of steps, read from lines, files and pages that grow meanwhile."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
