"""Runs: watched, guarded, profiled and remembered; sampling and calibration of this machine; accuracy of estimates."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
