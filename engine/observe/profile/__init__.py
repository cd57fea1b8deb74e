"""Profiles: what a run used from its start to its end, what held it up, and how fast its stages went."""
