"""Plans as files: loading, every fault of a file at once, saving."""
