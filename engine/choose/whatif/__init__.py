"""One plan with something changed."""
