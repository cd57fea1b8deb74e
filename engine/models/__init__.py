"""Models as shapes and counts: parameters, operations, cache."""
