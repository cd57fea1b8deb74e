"""Communication between a trainer and its guard through a callback."""
