"""What commands that list rows of the catalogue have in common: their options, and how rows are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import click

from capacity_tui.tui.cli.output import Command, Output, output_options, tell, tell_problems

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Row as CatalogRow
    from capacity_tui.engine.catalog import Table as CatalogTable

RowT = TypeVar("RowT", bound="CatalogRow")


def listing_options(command: Command) -> Command:
    """Add the options that every catalogue has, and words without an option, by which it is filtered too."""
    for option in (
        click.option("--filter", "text", metavar="TEXT", default="", help="Only rows that contain every word of it."),
        click.option("--list", "listing", is_flag=True, help="List the rows (the default)."),
        output_options("table", "json", "yaml"),
    ):
        command = option(command)

    @wraps(command)
    def with_words(words: tuple[str, ...], text: str, **others: object) -> object:
        return command(text=" ".join((*words, text)).strip(), **others)

    return click.argument("words", nargs=-1, metavar="[TEXT]...")(with_words)


def named_or_matching(rows: CatalogTable[RowT], text: str) -> list[RowT]:
    """Return the rows whose fields or other names, but for remarks and sources, contain every word; else the one."""
    others: dict[str, list[str]] = {}
    for alias, row_id in rows.aliases.items():
        others.setdefault(row_id, []).append(alias)
    matches = [
        row for row in rows.values() if contains(" ".join(map(str, (*_searched(row), *others.get(row.id, ())))), text)
    ]
    named = None if matches else rows.find_id(text)
    return matches if named is None else [rows[named]]


def _searched(row: CatalogRow) -> Iterable[object]:
    return (value for name, value in row if not name.endswith(("notes", "source", "used_by")))


def contains(row: str, text: str) -> bool:
    """Whether a row of texts contains every word of a text."""
    folded = row.casefold()
    return all(word in folded for word in text.casefold().split())


def fields(row: CatalogRow) -> Mapping[str, object]:
    """Return the fields of a row that have a value, as plain data."""
    return row.model_dump(mode="json", exclude_none=True)


# Units by the word of a field's name that says them.
_UNITS = {
    "gbs": "GB/s",
    "gbit": "Gb/s",
    "gb": "GB",
    "gib": "GiB",
    "mib": "MiB",
    "tflops": "TFLOP/s",
    "gflops": "GFLOP/s",
    "tops": "TOP/s",
    "ghz": "GHz",
    "mts": "MT/s",
    "us": "µs",
    "w": "W",
}


def write_details(row: CatalogRow, output: Output, more: Iterable[tuple[str, str]] = ()) -> None:
    """Write all that is known about one row: fields as files of the catalogue name them, with their units.

    Args:
        more: what people want to know besides, which no field of the row says.
    """
    if output.is_data:
        output.data(fields(row))
        return
    from capacity_tui.tui.cli.rich_tables import pairs

    output.show([pairs([*_entries(fields(row)), *more])])


def _entries(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each field that says something with its value; of blocks by name, such as regions, each by itself."""
    for key, value in data.items():
        if isinstance(value, dict) and value and all(isinstance(block, dict) for block in value.values()):
            yield from ((f"{key}: {block_name}", _cell(key, block)) for block_name, block in value.items())
        elif value not in ([], {}):
            yield key, _cell(key, value)


def _cell(key: str, value: object) -> str:
    if isinstance(value, dict):
        filled = {name: entry for name, entry in value.items() if entry not in ([], {})}
        return ", ".join(f"{name} {_cell(name, entry)}" for name, entry in filled.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    unit = next((_UNITS[word] for word in key.split("_") if word in _UNITS), "")
    return f"{value:.12g} {unit}".rstrip()


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
    output: Output,
) -> None:
    """Write one row with all that is known, or those that match a text.

    Args:
        rows: the catalogue.
        columns: its table.
        details: name of the one row.
        text: what a row has to contain.

    Raises:
        CapacityError: no row has that name, or the file cannot be written.
    """
    tell_problems(rows.problems)
    if details is not None:
        write_details(rows.find(details), output)
        return
    matches = named_or_matching(rows, text)
    if output.is_data:
        output.data([fields(row) for row in matches])
        return
    cells = [columns.cells(row) for row in matches]
    write_table(columns.heads, cells, columns.right, columns.kept, output, rows.nearest(text))


def write_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Iterable[int],
    kept: Iterable[int],
    output: Output,
    near: Sequence[str],
) -> None:
    """Write rows of cells as a table; where there are none, say which names are near."""
    from capacity_tui.tui.cli.rich_tables import Listing

    output.show([Listing(heads, rows, frozenset(right), frozenset(kept), is_list=True)])
    if not rows:
        tell_nothing(near)


def tell_nothing(near: Sequence[str]) -> None:
    """Say that no row matches, and which names are near to what was typed."""
    close = f"; nearest: {', '.join(near)}" if near else ""
    tell(f"nothing matches{close}; say nothing more to see everything")
