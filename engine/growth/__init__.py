"""What grows with the size of a job: laws fitted to measured runs, and settings ranked by short runs."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
