"""Detectors over samples of a run: what goes wrong, and what is about to."""
