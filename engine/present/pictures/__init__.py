"""What is behind figures as pictures: of text for terminals, and as SVG for pages."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
