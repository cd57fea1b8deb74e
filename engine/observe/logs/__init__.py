"""Logs of runs: figures of steps, read from lines, files and pages that grow meanwhile."""
