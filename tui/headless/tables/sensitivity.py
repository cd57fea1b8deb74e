"""What moves a figure most as Rich tables with bars."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from capacity_tui.engine.present import TORNADO_HEADS, measurement_advice, tornado_headline, tornado_tables
from capacity_tui.engine.solve import Sensitivity
from capacity_tui.tui.headless.tables.layout import Listing


def sensitivity_tables(found: Sensitivity, plan_name: str, top: int, ascii_only: bool) -> Iterator[RenderableType]:
    """Yield the figure, what moves it with bars on one scale, and what to measure next.

    Args:
        found: what moves it.
        plan_name: how commands name the plan.
        top: rows of each table.
        ascii_only: whether bars are drawn with ASCII characters alone.
    """
    yield Text(tornado_headline(found, plan_name), style="bold")
    for table in tornado_tables(found, top, ascii_only):
        rows = tuple((row.label, row.bar, *row.cells) for row in table.rows)
        right = frozenset(range(2, 2 + len(TORNADO_HEADS)))
        yield Listing((table.title, "", *TORNADO_HEADS), rows, right, kept=frozenset({0}), spare=frozenset({1}))
        if table.others:
            yield Text(f"and {table.others} more that move it less", style="dim")
    yield Text(measurement_advice(found, plan_name))
