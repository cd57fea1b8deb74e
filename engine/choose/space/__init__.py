"""The space of configurations, and its evaluation: arrays from end to end."""
