"""Figures of an estimate: one table of them, how each is read, called and shown, and the limits a plan sets them."""
