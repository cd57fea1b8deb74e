"""The terminal's side of capacity-tui: the screen and the command line."""
