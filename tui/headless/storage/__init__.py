"""The commands about storage: what patterns, databases and training data take, one file for each."""
