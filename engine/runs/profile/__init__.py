"""Profiles: what a run used from its start to its end, its bottleneck, and how fast its stages went."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
