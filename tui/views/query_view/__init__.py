"""What views have in common that ask a question about the plan, and show the rows that answer it."""
