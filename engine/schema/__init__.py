"""What a field of a plan is: its type, label, range and step."""
