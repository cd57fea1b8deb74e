"""Calibration: published measurements, how well the estimates meet them, and what they are fitted on."""
