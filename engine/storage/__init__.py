"""How storage grows with samples: patterns under a Zipf law, and the databases that hold them."""
