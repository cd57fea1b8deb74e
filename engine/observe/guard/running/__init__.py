"""The processes of a guarded run: started, followed, halted, ended, and taken up by another guard."""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
