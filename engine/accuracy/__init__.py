"""Published measurements, and how well the estimates meet them."""
