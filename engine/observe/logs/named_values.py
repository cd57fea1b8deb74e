"""Figures in records that write names with values: JSON, Python dictionaries, columns, tags, metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from capacity_tui.engine.catalog.rows import NUMBER, Key, RunLog, in_basic_units, key_of_name

_PAIR = re.compile(rf"""['"]([^'"\n]{{1,200}})['"]\s*:\s*['"]?({NUMBER})(?=['"\s,}}\]]|$)""", re.IGNORECASE)
_PLAIN_NUMBER = re.compile(NUMBER, re.IGNORECASE)
# Averages over all steps, and figures of other work than the training itself.
_OTHER_WORK = frozenset({"eval", "evaluation", "val", "valid", "validation", "test"})
_DEEPEST = 8
_LONGEST_TEXT = 40


class NamedValues:
    """Finds figures by the names that programs give them.

    Args:
        rows: what programs call them; the first row that has a name counts.
    """

    def __init__(self, rows: Iterable[RunLog]) -> None:
        self._rows = tuple(rows)

    @cached_property
    def _known(self) -> Mapping[str, tuple[str, int, Key, str]]:
        """Figure, rank among the names of it, key and program by name."""
        known: dict[str, tuple[str, int, Key, str]] = {}
        for row in self._rows:
            for figure, keys in row.named.items():
                for rank, key in enumerate(keys):
                    known.setdefault(key.name, (figure, rank, key, row.name))
        return known

    def knows(self, name: str) -> bool:
        """Return whether a name is that of a figure."""
        return key_of_name(name) in self._known

    def figures(self, values: Iterable[tuple[str, object]]) -> tuple[dict[str, float], str]:
        """Return the figures among named values, and whose names they have.

        Args:
            values: names, of nested ones with points between, and their values.
        """
        ranked: dict[str, tuple[int, float]] = {}
        program = ""
        for name, value in values:
            known = self._known_as(name)
            number = None if known is None else _number(value, known[2].unit)
            if known is None or number is None:
                continue
            figure, rank, _, owner = known
            if figure not in ranked or rank < ranked[figure][0]:
                ranked[figure] = (rank, number)
                program = program or owner
        return {figure: number for figure, (_, number) in ranked.items()}, program

    def _known_as(self, name: str) -> tuple[str, int, Key, str] | None:
        """Return what a name stands for: as a whole, else by its last part, unless that is of other work."""
        known = self._known.get(key_of_name(name))
        if known is not None or "." not in name:
            return known
        *path, last = name.split(".")
        return None if _OTHER_WORK & {key_of_name(part) for part in path} else self._known.get(key_of_name(last))


def named_in_line(line: str) -> list[tuple[str, object]] | None:
    """Return names and values of a line that is, or holds, a JSON object or a Python dictionary; None where it doesn't.

    One that is cut off or no proper JSON is read as far as names stand before numbers.
    """
    start = line.find("{")
    if start < 0:
        return None
    if line.startswith("{"):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            pass
        else:
            return list(flattened(document)) if isinstance(document, dict) else None
    return [(match[1], match[2]) for match in _PAIR.finditer(line, start)] or None


def flattened(document: Mapping[str, object], path: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield names and values of a document, those of inner ones with points between."""
    for name, value in document.items():
        full = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from flattened(value, full, depth + 1)
        else:
            yield full, value


def _number(value: object, unit: str) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return in_basic_units(repr(float(value)) if abs(value) < 1e300 else "nan", unit)
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT and _PLAIN_NUMBER.fullmatch(value.strip()):
        return in_basic_units(value.strip(), unit)
    return None
