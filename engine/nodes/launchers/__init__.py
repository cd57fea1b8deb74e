"""How a command runs on every node: Slurm, Ray or SSH, whichever is there."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
