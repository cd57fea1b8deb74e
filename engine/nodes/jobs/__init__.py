"""Jobs of a plan: the batch script, its submission, the queue, and what accounting says afterwards."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
