"""Commands about runs: watching, guarding and measuring them, and their history."""
