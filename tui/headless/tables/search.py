"""Rich tables of what a search found."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from capacity_tui.engine.present import reason_rows, search_lines, search_table
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.tui.headless.tables.layout import Listing, table

_MOST_REASONS = 8


def search_tables(answer: SearchAnswer) -> Iterator[RenderableType]:
    """Yield the best configurations, and what the search looked at."""
    found = search_table(answer)
    if found.rows:
        yield Listing(found.heads, found.rows, frozenset(found.right), frozenset(range(found.kept)))
    else:
        yield Text("nothing fits and keeps every limit", style="bold red")
    for line in search_lines(answer):
        yield Text(line)
    for title, reasons in (("cannot run", answer.rejected), ("not inside", answer.missed)):
        if reasons:
            yield Text(f"{title}:", style="bold")
            yield table(("", "why", "such as"), reason_rows(reasons)[:_MOST_REASONS], right=(0,))
