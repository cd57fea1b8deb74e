"""Fits of the constants and ranges in ``profiles/`` to published and own measurements."""
