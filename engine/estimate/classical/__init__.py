"""Classical algorithms as neutral work: memory, kernels and the size at which they stop being reasonable."""
