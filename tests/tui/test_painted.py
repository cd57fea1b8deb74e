"""What is written is what the terminal does not show yet, and makes it show all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from capacity_tui.tui.terminal import Cell, Difference, Painted, _cells

WIDTH = 24
STYLES = (None, Style(bold=True), Style(color="red"))
texts = st.text(alphabet="ab ▇…日本e\u0301", max_size=WIDTH // 2)
lines = st.lists(st.tuples(texts, st.sampled_from(STYLES)), max_size=4)


def strip_of(parts: list[tuple[str, Style | None]]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(WIDTH)


@given(st.lists(lines, min_size=1, max_size=6))
def test_changes_make_a_line_of_the_terminal_what_it_should_be(shown: list[list[tuple[str, Style | None]]]) -> None:
    painted, terminal = Painted(), [("", None)] * WIDTH
    for parts in shown:
        wanted: list[Cell] = _cells(strip_of(parts))
        for start, cells in painted.changes(0, 0, wanted):
            assert cells[0][0], "a wide character is never cut"
            terminal[start : start + len(cells)] = cells
        assert terminal == wanted


def written(painted: Painted, *texts: str) -> str:
    strips = [[Strip([Segment(text)])] for text in texts]
    update = LayoutUpdate(strips, Region(0, 0, WIDTH, len(texts)))
    return Difference(update, painted).render_segments(Console())


def test_what_stands_there_is_not_written_again() -> None:
    painted = Painted()
    assert "step time 4.11 s" in written(painted, "verdict", "step time 4.11 s")
    assert written(painted, "verdict", "step time 4.11 s") == ""
    change = written(painted, "verdict", "step time 4.71 s")
    assert "7" in change
    assert "step" not in change
    painted.forget()
    assert "verdict" in written(painted, "verdict", "step time 4.71 s")
