"""Rich tables of the command line."""
