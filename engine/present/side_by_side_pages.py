"""Plans side by side in the forms that reports have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from capacity_tui.engine.present.html import template
from capacity_tui.engine.present.markdown import escaped, table_lines
from capacity_tui.engine.present.results import to_json, to_yaml
from capacity_tui.engine.present.side_by_side import SideBySide, as_data
from capacity_tui.engine.printable import printable_lines


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """One table of a comparison: a label and a text for each plan in every row."""

    title: str
    rows: tuple[tuple[str, ...], ...]


def comparison_tables(of: SideBySide) -> tuple[ComparisonTable, ...]:
    """Return what a comparison says: what the plans are, where they differ, and their figures."""
    plans = (("plan", *of.headlines), ("verdict", *of.verdicts))
    differing = tuple((each.label, *each.texts) for each in of.differing)
    figures = tuple((each.label, *each.texts) for each in of.figures)
    found = (
        ComparisonTable("Plans", plans),
        ComparisonTable("Differs", differing),
        ComparisonTable("Figures", figures),
    )
    return tuple(table for table in found if table.rows)


def write_comparison(form: str, of: SideBySide) -> str:
    """Return a comparison in one of the forms of reports that are written here, which tables are not."""
    return _WRITERS[form](of)


def _markdown(of: SideBySide) -> str:
    return printable_lines("\n".join(_markdown_lines(of))) + "\n"


def _markdown_lines(of: SideBySide) -> Iterator[str]:
    yield f"# {escaped(_title(of))}"
    yield from ("", f"Differences are those to {escaped(of.names[0])}.")
    for table in comparison_tables(of):
        yield from table_lines(table.title, (table.title, *map(escaped, of.names)), table.rows)


def _html(of: SideBySide) -> str:
    page = template("comparison.html").render(title=_title(of), names=of.names, tables=comparison_tables(of))
    return printable_lines(page)


def _title(of: SideBySide) -> str:
    return f"{', '.join(of.names)} side by side"


_WRITERS: Mapping[str, Callable[[SideBySide], str]] = {
    "markdown": _markdown,
    "html": _html,
    "json": lambda of: to_json(as_data(of)),
    "yaml": lambda of: to_yaml(as_data(of)),
}
