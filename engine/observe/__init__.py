"""Runs as they happen: sampling of processes and devices, logs, foresight, and the history of runs."""
