"""Names people type: the same whatever their case, spaces, hyphens and underscores."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from capacity_tui.engine.catalog.reading import Document, read_yaml
from capacity_tui.engine.errors import CapacityError, CatalogError

_SEPARATORS = re.compile(r"[\s_\-]+")

_SIMILARITY = 0.5


def key_of(name: str) -> str:
    """Return the form in which two spellings of one name are equal: ``RTX 4090`` and ``rtx-4090``."""
    return _SEPARATORS.sub("", name.casefold())


def brand_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Return what matches any of some brands as a whole word, whatever its case."""
    return re.compile(rf"\b(?:{'|'.join(re.escape(word) for word in words)})\b", re.IGNORECASE)


def brandless_key_of(name: str, brands: re.Pattern[str]) -> str:
    """Return the key of a name without its maker's brands: ``NVIDIA GeForce RTX 4090`` is ``rtx4090``."""
    return key_of(brands.sub("", name))


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Return up to ``most`` known names closest to a misspelt one, the closest first."""
    by_key: dict[str, str] = {}
    for candidate in known:
        by_key.setdefault(key_of(candidate), candidate)
    matches = difflib.get_close_matches(key_of(name)[:80], by_key, most, _SIMILARITY)
    return tuple(by_key[match] for match in matches)


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
