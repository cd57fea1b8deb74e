"""Transformers: memory, operators and communication of training, and serving."""
