"""Serving of transformers as neutral work: memory, prefill and decode, engine by engine."""
