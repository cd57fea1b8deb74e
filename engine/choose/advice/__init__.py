"""What to change, and what to mind."""
