"""What a field of a plan is: type, label, range, step and what follows from it; which forms a report can have."""
