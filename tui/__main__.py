"""Starts capacity-tui: ``python -m capacity_tui.tui``."""

import sys

from capacity_tui.tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
