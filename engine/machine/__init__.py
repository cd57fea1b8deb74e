"""What this machine is: facts with their provenance, its vendors' probes, and one cheap live sample."""
