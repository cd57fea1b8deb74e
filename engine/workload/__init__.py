"""What the user wants to run: plans, and models as shapes and counts."""
