"""What the machine is: facts with their provenance, probes per vendor, and one cheap live sample."""
