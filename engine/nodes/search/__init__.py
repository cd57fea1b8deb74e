"""A search shared out among the workers of a Ray cluster, with the same answer as here."""
