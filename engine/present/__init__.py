"""Answers and plans as texts that people and programs read."""
