"""The nodes of a cluster: detected one by one, equal ones merged, odd ones listed, kept as hardware for plans."""
