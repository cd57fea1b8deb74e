"""Transformers: sizes, where they come from, and what follows from them: parameters, operations, cache."""
