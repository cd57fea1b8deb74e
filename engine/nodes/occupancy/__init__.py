"""What the devices of a cluster do now: planned, free, busy or down; node by node, folded where there are many."""
