"""Searching: every configuration that a question leaves open, evaluated as arrays, and the best of them."""
