"""What the nodes of a cluster are: detected on each, equal ones merged, odd ones told, kept as hardware for plans."""
