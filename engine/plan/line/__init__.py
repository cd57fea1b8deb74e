"""The one line that says a plan, as the start prompt and the command line take it."""
