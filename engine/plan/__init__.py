"""What the user asks for: the plan, its sections and its fields."""
