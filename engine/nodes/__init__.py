"""The nodes of a cluster that people already have: reached, listed, measured and given work through what runs there."""
