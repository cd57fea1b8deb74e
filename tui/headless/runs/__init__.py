"""The commands about runs: watching them, measuring what they take, and what was kept of them."""
