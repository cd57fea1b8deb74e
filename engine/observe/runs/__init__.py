"""Running and past runs, as files that any other process can follow."""
