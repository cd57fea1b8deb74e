"""What configurations of other tools will do, and what is wrong with them."""
