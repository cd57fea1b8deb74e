"""A text whose styles are told in fewer bytes shows the same on a terminal."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.control import Control
from rich.style import Style

from capacity_tui.tui.text import with_fewer_styles

WIDTH, HEIGHT = 20, 4
COLOURS = ColorSystem.TRUECOLOR
colours = st.sampled_from([None, "red", "bright_blue", "color(214)", "#12a0ff", "default"])
flags = st.sampled_from([None, True, False])
styles = st.builds(
    Style, color=colours, bgcolor=colours, bold=flags, italic=flags, underline=flags, reverse=flags, strike=flags
)
runs = st.lists(st.tuples(st.text("ab é", min_size=1, max_size=3), styles), max_size=2)
pieces = st.tuples(st.integers(0, WIDTH - 6), st.integers(0, HEIGHT - 1), runs)
Pieces = list[tuple[int, int, list[tuple[str, Style]]]]


def shown(text: str) -> object:
    screen = pyte.Screen(WIDTH, HEIGHT)
    pyte.Stream(screen).feed(text + "x")  # what comes after is plain
    return [[screen.buffer[y][x] for x in range(WIDTH)] for y in range(HEIGHT)]


def written(parts: Pieces) -> str:
    return "".join(
        str(Control.move_to(x, y)) + "".join(style.render(text, color_system=COLOURS) for text, style in run)
        for x, y, run in parts
    )


@given(st.lists(pieces, max_size=6))
def test_a_terminal_shows_the_same(parts: Pieces) -> None:
    text = written(parts)
    fewer = with_fewer_styles(text)
    assert shown(fewer) == shown(text)
    assert len(fewer) <= len(text)


def test_a_colour_alone_is_told_where_nothing_else_changes() -> None:
    told = "\x1b[1;38;5;231;48;5;233m59\x1b[0m\x1b[1;38;5;203;48;5;233m +7%\x1b[0m"
    assert with_fewer_styles(told) == "\x1b[1;38;5;231;48;5;233m59\x1b[38;5;203m +7%\x1b[0m"


def test_what_is_not_known_is_left_as_it_is() -> None:
    told = "\x1b[1;53ma\x1b[0m\x1b[1mb\x1b[0m"
    assert with_fewer_styles(told) == told
