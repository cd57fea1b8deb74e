"""What makes the data that the program ships; none of it is part of the program."""
