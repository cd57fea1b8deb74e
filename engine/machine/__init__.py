"""What this machine is: facts with their provenance, its vendors' probes, and one cheap live sample."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
