"""What moves a figure of a plan most, and what would make it surer."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
