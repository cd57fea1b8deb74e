"""Which machines at what price: instances beside each other, moving between them, fleets under a load."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
