"""Moving a job to other machines: what it reaches there, what that costs and takes, and whether it is worth it."""
