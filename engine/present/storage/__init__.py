"""What storage takes, as plain data and as parts of reports."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
