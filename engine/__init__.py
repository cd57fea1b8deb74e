"""What capacity-tui knows and computes; it knows no terminal. ``api`` holds the public names."""
