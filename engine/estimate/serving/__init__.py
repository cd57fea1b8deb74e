"""Serving of transformers: memory, prefill and decode, engine by engine."""
