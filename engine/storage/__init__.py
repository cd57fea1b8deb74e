"""How storage grows with samples: patterns under a Zipf law, and the databases that hold them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
