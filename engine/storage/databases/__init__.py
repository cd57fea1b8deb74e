"""Databases that hold patterns: how fast they are here, and what they take on disk."""
