"""Other names of rows, the user's own laid over the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from capacity_tui.engine.catalog.reading import Document, read_yaml
from capacity_tui.engine.errors import CapacityError, CatalogError


def read_aliases(
    shipped: Mapping[str, Mapping[str, str]], user_files: Sequence[Path]
) -> tuple[dict[str, dict[str, str]], tuple[CapacityError, ...]]:
    """Return the aliases of each table, and the problems of the user's own.

    Args:
        shipped: alias to id, by table.
        user_files: the user's files of the same form.
    """
    aliases = {table: dict(names) for table, names in shipped.items()}
    problems: list[CapacityError] = []
    for path in user_files:
        try:
            _add_aliases(aliases, read_yaml(path))
        except CapacityError as problem:
            problems.append(problem)
    return aliases, tuple(problems)


def _add_aliases(aliases: dict[str, dict[str, str]], document: Document) -> None:
    """Add the aliases of a user's document to those of each table."""
    for table, names in (document.data if isinstance(document.data, dict) else {}).items():
        if table not in aliases or not isinstance(names, dict):
            hint = f"write a table ({', '.join(aliases)}) and under it alias: id"
            raise CatalogError("not a table of aliases", table, hint, document.place(table))
        aliases[table] |= {alias: str(row_id) for alias, row_id in names.items()}
