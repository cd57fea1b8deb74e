"""What a field of a plan is: type, label, range, step and what follows from it; which forms a report can have."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
