"""Networks of layers as neutral work: memory, kernels and communication of a step."""
