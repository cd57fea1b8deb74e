"""Training of transformers as neutral work: memory, operators and communication of a step."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
