"""Vendors of accelerators: one folder each, which fills in a ``Vendor``, and the registry of all of them."""
