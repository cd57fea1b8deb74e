"""What this machine is: facts with their provenance, and one cheap live sample."""
