"""What capacity-tui knows and computes; it knows no terminal."""
