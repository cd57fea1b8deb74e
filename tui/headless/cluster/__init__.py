"""The commands about the nodes of a cluster, one file for each."""
