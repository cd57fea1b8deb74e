"""Work times hardware: memory, time, speed, power, cost, and how sure each of them is."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
