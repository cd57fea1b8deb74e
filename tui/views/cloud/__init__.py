"""The view of clouds: the plan on every machine one can rent, and whether moving there is worth it."""
