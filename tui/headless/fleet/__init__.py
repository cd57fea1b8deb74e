"""``fleet``: instances beside each other, and the workloads they are compared for."""
