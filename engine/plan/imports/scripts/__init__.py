"""Scripts of other tools, and files that run them: commands and calls as documents of options; nothing is run."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
