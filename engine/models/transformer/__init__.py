"""Transformers: sizes, where they come from, and what follows from them: parameters, operations, cache."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
