"""The machine around its accelerators: processor, memory, disks, network, power."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
