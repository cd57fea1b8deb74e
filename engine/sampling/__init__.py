"""Sampling: how fast this machine really runs the kernels and collectives that plans are made of."""
