"""Kernels and collectives timed over nodes, as facts of their links."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
