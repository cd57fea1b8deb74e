"""Serving of transformers as neutral work: memory, prefill and decode, engine by engine."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
