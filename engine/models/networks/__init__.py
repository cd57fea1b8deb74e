"""Networks of layers: perceptrons, convolutional and recurrent networks."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
