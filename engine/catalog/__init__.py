"""Facts about hardware, models, prices and settings, each with its source, date and confidence.

``load_catalog()`` gives every table; a table is a mapping of id to row, and ``table.find(name)`` also
understands aliases and other spellings. Names are loaded when they are first used: whoever reads a shipped file alone
need not wait for the classes of all rows.
"""

from capacity_tui.engine.door import open_door

open_door(__name__, __file__)
