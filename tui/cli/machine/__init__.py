"""Commands about this machine and the nodes of a cluster."""
