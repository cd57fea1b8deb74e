"""The view that searches for plans: a question, and the rows that answer it."""
