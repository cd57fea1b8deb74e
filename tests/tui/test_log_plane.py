"""Curves over two logarithmic axes, as they are drawn."""

from __future__ import annotations

import pytest

from capacity_tui.tui.shown.scale import LogChart, LogCurve, LogLimit
from capacity_tui.tui.text import Glyphs, to_ascii
from capacity_tui.tui.widgets.plots import log_plane

SAMPLES = [10.0**power for power in range(2, 11)]
CHART = LogChart(
    "size over samples",
    (LogCurve(tuple((samples, 10 * samples) for samples in SAMPLES)),),
    (LogLimit(1e9, "disk 1 GB"), LogLimit(1e9, "memory 1 GB")),
    (1e6, 1e7),
    "B",
)


def drawn(glyphs: Glyphs, width: int = 50, height: int = 11) -> list[str]:
    return [line.plain for line in log_plane(CHART, width, height, glyphs)]


@pytest.mark.parametrize("glyphs", list(Glyphs))
def test_a_curve_rises_to_the_upper_right_and_every_row_has_the_width(glyphs: Glyphs) -> None:
    title, *plane, axis = drawn(glyphs)
    assert title.startswith("size over samples")
    assert {len(row) for row in (title, *plane, axis)} == {50}
    assert plane[0].rstrip() == plane[0]
    assert "1kB" in plane[-1]
    assert "100GB" in plane[0]
    assert "100" in axis
    assert "10B" in axis


def test_limits_are_named_beside_each_other_and_the_point_that_is_here_is_marked() -> None:
    rows = drawn(Glyphs.BRAILLE)
    limit = next(row for row in rows if "disk 1 GB" in row)
    assert "memory 1 GB" in limit
    marked = next(row.index("◆") for row in rows if "◆" in row)
    assert abs(marked - rows[-1].index("1M")) <= 1


def test_a_plane_in_ascii_shows_the_same() -> None:
    text = to_ascii("\n".join(drawn(Glyphs.ASCII)))
    assert text.isascii()
    assert "@" in text
    assert "*" in text
    assert "?" not in text


def test_without_room_nothing_is_drawn() -> None:
    assert log_plane(CHART, 50, 3, Glyphs.BRAILLE) == []
    assert log_plane(CHART, 12, 10, Glyphs.BRAILLE) == []
    assert log_plane(LogChart("nothing", ()), 50, 10, Glyphs.BRAILLE) == []
