"""What commands that list rows of the catalogue have in common: their options, and how rows are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import click

from capacity_tui.tui.headless.output import as_text, format_option, output_option, tell, tell_problems, write

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Row as CatalogRow
    from capacity_tui.engine.catalog import Table as CatalogTable

RowT = TypeVar("RowT", bound="CatalogRow")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def listing_options(command: CommandT) -> CommandT:
    """Add the options that every catalogue has."""
    for option in (
        click.option("--filter", "text", metavar="TEXT", default="", help="Only rows that contain every word of it."),
        click.option("--list", "listing", is_flag=True, help="List the rows (the default)."),
        format_option("table", "json", "yaml"),
        output_option,
    ):
        command = option(command)
    return command


def named_or_matching(rows: CatalogTable[RowT], text: str) -> list[RowT]:
    """Return the rows whose fields or other names, but for remarks and sources, contain every word; else the one."""
    others: dict[str, list[str]] = {}
    for alias, row_id in rows.aliases.items():
        others.setdefault(row_id, []).append(alias)
    found = [
        row for row in rows.values() if contains(" ".join(map(str, (*_searched(row), *others.get(row.id, ())))), text)
    ]
    named = None if found else rows.find_id(text)
    return found if named is None else [rows[named]]


def _searched(row: CatalogRow) -> Iterable[object]:
    return (value for name, value in row if not name.endswith(("notes", "source", "used_by")))


def contains(row: str, text: str) -> bool:
    """Whether a row of texts contains every word of a text."""
    folded = row.casefold()
    return all(word in folded for word in text.casefold().split())


def fields(row: CatalogRow) -> Mapping[str, object]:
    """Return the fields of a row that have a value, as plain data."""
    return row.model_dump(mode="json", exclude_none=True)


def write_details(row: CatalogRow, form: str | None, output: Path | None) -> None:
    """Write all that is known about one row."""
    if form in ("json", "yaml"):
        write_data(fields(row), form, output)
        return
    from capacity_tui.tui.headless.tables.layout import pairs

    write(as_text([pairs(list(_entries(fields(row))))], output is not None), output)


def _entries(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each field that says something with its value; of blocks by name, such as regions, each by itself."""
    for key, value in data.items():
        name = key.replace("_", " ")
        if isinstance(value, dict) and value and all(isinstance(block, dict) for block in value.values()):
            yield from ((f"{name} {each}", _cell(block)) for each, block in value.items())
        elif value not in ([], {}):
            yield name, _cell(value)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        said = {key.replace("_", " "): each for key, each in value.items() if each not in ([], {})}
        return ", ".join(f"{name} {_cell(each)}" for name, each in said.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def write_data(data: object, form: str, output: Path | None) -> None:
    """Write plain data as JSON or YAML."""
    from capacity_tui.engine.present import to_json, to_yaml

    write(to_json(data) if form == "json" else to_yaml(data), output)


class Columns(NamedTuple, Generic[RowT]):
    """How rows of a catalogue look as a table.

    Attributes:
        heads: names of the columns.
        cells: the texts of a row.
        right: columns that are aligned at the right.
        kept: columns that are never left out for want of room.
    """

    heads: Sequence[str]
    cells: Callable[[RowT], Sequence[str]]
    right: Iterable[int]
    kept: Iterable[int]


def write_listing(
    rows: CatalogTable[RowT],
    columns: Columns[RowT],
    details: str | None,
    text: str,
    form: str | None,
    output: Path | None,
) -> None:
    """Write one row with all that is known, or those that match a text.

    Args:
        rows: the catalogue.
        columns: its table.
        details: name of the one row.
        text: what a row has to contain.
        form: ``table``, ``json`` or ``yaml``.
        output: file; standard output without one.

    Raises:
        CapacityError: no row has that name, or the file cannot be written.
    """
    tell_problems(rows.problems)
    if details is not None:
        write_details(rows.find(details), form, output)
        return
    found = named_or_matching(rows, text)
    if form in ("json", "yaml"):
        write_data([fields(row) for row in found], form, output)
        return
    cells = [columns.cells(row) for row in found]
    write_table(columns.heads, cells, columns.right, columns.kept, output, rows.nearest(text))


def write_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Iterable[int],
    kept: Iterable[int],
    output: Path | None,
    near: Sequence[str],
) -> None:
    """Write rows of cells as a table; where there are none, say which names are near."""
    from capacity_tui.tui.headless.tables.layout import Listing

    write(as_text([Listing(heads, rows, frozenset(right), frozenset(kept), is_list=True)], output is not None), output)
    if not rows:
        tell_nothing(near)


def tell_nothing(near: Sequence[str]) -> None:
    """Say that no row matches, and which names are near to what was typed."""
    close = f"; nearest: {', '.join(near)}" if near else ""
    tell(f"nothing matches{close}; leave --filter out to see everything")
