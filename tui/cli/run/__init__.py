"""Commands that run, watch or measure: jobs and their history, this machine, the nodes of a cluster."""
