"""The history of runs: what was predicted, what was measured, on which machine, kept for later."""
