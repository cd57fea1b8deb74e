"""What the program knows of the terminal: its driver, signals, glyphs and lines of text."""
