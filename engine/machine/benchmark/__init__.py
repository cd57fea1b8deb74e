"""Short measurements of this machine: memory, arithmetic, accelerators, disks, network."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
