"""What a trainer and its guard tell each other through a callback."""
