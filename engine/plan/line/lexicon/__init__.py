"""What single words and names of a line mean, whatever stands beside them."""
