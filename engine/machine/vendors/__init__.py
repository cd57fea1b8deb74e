"""Vendors of accelerators: a module or package each, which makes a ``Vendor``, and the registry of all of them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
