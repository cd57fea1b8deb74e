"""The view of a cluster: its nodes and devices, what the plan puts where, the queue."""
