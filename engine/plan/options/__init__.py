"""What options of other tools mean in a plan, wherever they are written: in files, commands, scripts or a line."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
