"""A watched run: its log and samples compared with its prediction."""
