"""Options of other tools' configuration files, written by the rows of ``profiles/exports.yaml``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from operator import attrgetter
from typing import Any, TypeAlias

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.plan.imports import tool
from capacity_tui.engine.present.frameworks.job import Job

ExportRow: TypeAlias = str | Mapping[str, Any]


def exported(block: str, job: Job, **computed: object) -> dict[str, object]:
    """Return the options of a file, those left out that have no value.

    Args:
        block: its rows.
        job: whose values they name.
        computed: further values by name; one with attributes is reached into by dots.
    """
    return _options(_blocks()[block], job, computed)


def exported_arguments(block: str, job: Job, **computed: object) -> Iterator[tuple[str, ...]]:
    """Yield the options of a command with their values; what is true has none, what is false is left out."""
    for option, value in exported(block, job, **computed).items():
        if value is not False:
            yield (option,) if value is True else (option, str(value))


def known_values(block: str, option: str) -> Collection[str]:
    """Return the values that an option of a block has words for."""
    row = _blocks()[block][option]
    assert not isinstance(row, str)  # noqa: S101 - shipped data
    values: Mapping[str, object] = row["values"]
    return values.keys()


@cache
def _blocks() -> Mapping[str, Mapping[str, ExportRow]]:
    blocks: Mapping[str, Mapping[str, ExportRow]] = parse_shipped(files("capacity_tui.profiles") / "exports.yaml")
    return blocks


def _options(rows: Mapping[str, ExportRow], job: Job, computed: Mapping[str, object]) -> dict[str, object]:
    values = {option: _written(row, job, computed) for option, row in rows.items()}
    return {option: value for option, value in values.items() if value is not None or _is_null(rows[option])}


def _is_null(row: ExportRow) -> bool:
    """Return whether a row writes an option without a value."""
    return not isinstance(row, str) and any(name in row and row[name] is None for name in ("is", "else"))


def _written(row: ExportRow, job: Job, computed: Mapping[str, object]) -> object:
    """Return what a row writes; None where it is left out."""
    if isinstance(row, str):
        return _value(row, job, computed)
    conditions = row.get("when", [])
    for condition in conditions if isinstance(conditions, list) else [conditions]:
        if not _written(condition, job, computed):
            return None
    if "options" in row:
        return _options(row["options"], job, computed)
    return row["is"] if "is" in row else _read(row, _value(row["of"], job, computed))


def _read(row: Mapping[str, Any], value: object) -> object:
    """Return what a row makes of a value."""
    if "in" in row:
        return value in row["in"]
    if "not" in row:
        return value not in row["not"]
    if "words" in row:
        name, _, option = row["words"].partition(".")
        return tool(name).words(option).get(value, row.get("else"))
    if "values" in row:
        return row["values"].get(str(value), row.get("else"))
    return row.get("else") if value is None else value


def _value(name: str, job: Job, computed: Mapping[str, object]) -> object:
    first, _, rest = name.partition(".")
    if first not in computed:
        return attrgetter(name)(job)
    value = computed[first]
    return attrgetter(rest)(value) if rest else value
