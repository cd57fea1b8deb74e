"""Which machines at what price: instances beside each other, moving between them, fleets under a load."""
