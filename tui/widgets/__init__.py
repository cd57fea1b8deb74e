"""The panels and what they are drawn with."""
