"""A map of two fields of the plan: what the plan would be with each pair of their values."""
