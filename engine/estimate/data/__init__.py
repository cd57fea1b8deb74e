"""How the data of a training reach its devices: bytes, reading, decoding, and what nothing hides of it."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
