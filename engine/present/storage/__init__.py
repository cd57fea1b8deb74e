"""What storage takes, as plain data and as parts of reports."""
