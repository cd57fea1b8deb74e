"""The words of a line, recognized kind by kind: each kind stands on those before it."""
