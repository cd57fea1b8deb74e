"""What training a transformer keeps in the memory of a device: activations, the loss, and all of it phase by phase."""
