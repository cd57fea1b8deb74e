"""What grows with the size of a job: laws fitted to measured runs, and settings ranked by short runs."""
