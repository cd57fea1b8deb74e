"""Networks of layers: perceptrons and convolutional networks."""
