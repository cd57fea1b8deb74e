"""Classical algorithms as neutral work: memory, kernels and the size at which they stop being reasonable."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
