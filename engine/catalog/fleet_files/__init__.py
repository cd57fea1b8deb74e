"""The JSON files of the fleet guide, read as they are and laid over the catalogue like the user's own YAML."""
