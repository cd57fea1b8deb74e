"""The sections of a plan that are large enough for a file of their own."""
