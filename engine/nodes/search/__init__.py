"""A search shared out among the workers of a Ray cluster, with the same answer as here."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
