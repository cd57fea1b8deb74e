"""What a training keeps and moves: data, checkpoints, caches, main memory."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
