"""Answers about machines and fleets as texts that people and programs read."""
