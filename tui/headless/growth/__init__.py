"""The commands about growth: laws of runs of growing size, and settings ranked by short runs."""
