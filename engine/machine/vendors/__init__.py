"""Vendors of accelerators: one folder each, which fills in a ``Vendor``, and the registry of all of them."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
