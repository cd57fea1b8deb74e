"""Questions asked backwards: which value of a field keeps the limits."""
