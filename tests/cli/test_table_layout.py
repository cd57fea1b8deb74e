"""Tables on narrow terminals: no answer is lost for want of room."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from capacity_tui.engine.present import TablePart, table_part
from capacity_tui.tui.cli.rich_tables import Listing

HEADS = ("machine", "bar", "time", "cost", "why", "risk")
ROW = ("aws-p5-48xlarge", "#" * 20, "12 min 30 s", "$1 234", "cheapest of all that keep the deadline", "low")


def shown(table: TablePart, width: int) -> list[str]:
    console = Console(width=width, file=StringIO())
    with console.capture() as captured:
        console.print(Listing(table))
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_every_cell_is_somewhere_and_bars_go_first(width: int) -> None:
    lines = shown(table_part(HEADS, [ROW, ROW], right=(2, 3), kept=(0, 3), spare=(1,)), width)
    words = " ".join(" ".join(lines).split())
    assert all(words.count(cell) == 2 for column, cell in enumerate(ROW) if column not in (1, 4))
    assert all(words.count(word) >= 2 for word in ROW[4].split())
    assert (ROW[1] in words) == (width >= 120)
    assert all(len(line) <= width for line in lines)


def test_lists_to_look_through_keep_a_line_a_row_and_say_what_is_missing() -> None:
    lines = shown(replace(table_part(HEADS, [ROW] * 60, kept=(0,)), is_list=True), 50)
    assert len(lines) == 63
    assert "no room for" in lines[-1]


def test_what_has_room_is_one_line_a_row() -> None:
    assert len(shown(table_part(HEADS, [ROW, ROW]), 120)) == 4
