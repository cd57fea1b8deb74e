"""Keys that move up and down in whatever lies over a screen."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding, BindingType

_TO_THE_END = 100_000
MOVES: Final[list[BindingType]] = [
    Binding("up,k", "move(-1)", "Up"),
    Binding("down,j", "move(1)", "Down"),
    Binding("g,home", f"move(-{_TO_THE_END})", "First"),
    Binding("G,end", f"move({_TO_THE_END})", "Last"),
]
"""Heard as ``action_move`` with a number of lines."""
