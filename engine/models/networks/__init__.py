"""Networks of layers: perceptrons, convolutional and recurrent networks."""
