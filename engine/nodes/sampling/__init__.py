"""Kernels and collectives timed over nodes, as facts of their links."""
