"""The nodes of a cluster: detected one by one, equal ones merged, odd ones listed, kept as hardware for plans."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
