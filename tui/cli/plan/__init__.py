"""Commands about plans: estimates, checks, and files."""
