"""Sampling: how fast this machine really runs the kernels and collectives that plans are made of."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
