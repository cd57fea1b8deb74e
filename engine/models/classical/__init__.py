"""Classical algorithms: what a plan says about one."""
