"""Runs that were watched, as texts and pages."""
