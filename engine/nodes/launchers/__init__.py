"""How a command runs on every node: Slurm, Ray or SSH, whichever is there."""
