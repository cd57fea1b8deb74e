"""Learning patterns: what holds it up on a machine, and the names of its guide over the answers of this program."""
