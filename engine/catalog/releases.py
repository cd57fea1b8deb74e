"""Releases: which of several rows of software stands for one that a plan names, as ``==0.7.3`` or ``==2023.06``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

from capacity_tui.engine.catalog.rows import Released
from capacity_tui.engine.errors import CatalogError

ReleasedT = TypeVar("ReleasedT", bound=Released)

SEPARATOR = "=="
"""Stands between a name and its release, as in requirements of Python packages."""

# "0.7.3", "v0.8.5.post1", "core_r0.12.0", llama.cpp's "b5600"; what follows the numbers is not compared.
_NUMBERS = re.compile(r"(?:core_)?[a-z]?(\d+(?:\.\d+)*)", re.IGNORECASE)

_FIRST_YEAR = 2000


def named_release(name: str) -> tuple[str, str]:
    """Return the software and the release of a name; the release is empty where it gives none."""
    software, _, release = name.partition(SEPARATOR)
    return software.strip(), release.strip()


def release_numbers(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, or of its year and month; nothing where it has none."""
    match = _NUMBERS.match(release)
    return tuple(int(number) for number in match[1].split(".")) if match else ()


def covers(row: Released, release: str) -> bool:
    """Return whether a row stands for a release."""
    numbers = release_numbers(release)
    if not numbers:
        return False
    if numbers[0] >= _FIRST_YEAR and len(numbers) > 1:
        month = numbers[:2]
        return (row.since is None or month >= release_numbers(row.since)) and (
            row.until is None or month < release_numbers(row.until)
        )
    first, last = (release_numbers(end or "") for end in (row.first_release, row.last_release))
    # 0.8 is 0.8.0.
    numbers += (0,) * (max(len(first), len(last)) - len(numbers))
    return numbers[: len(first)] >= first and (not last or numbers[: len(last)] <= last)


def rows_of_release(rows: Iterable[ReleasedT], name: str, release: str) -> Sequence[ReleasedT]:
    """Return the rows that stand for a release of some software.

    Raises:
        CatalogError: none does; the hint names those that are known.
    """
    rows = tuple(rows)
    fitting = [row for row in rows if covers(row, release)]
    if not fitting:
        known = dict.fromkeys(f"{row.id}: {text}" for row in rows if (text := release_text(row)))
        hint = f"known: {'; '.join(known)}; or leave the release out for the current one"
        raise CatalogError(f"no release of {name} is called {release!r}"[:200], hint=hint)
    return fitting


def release_text(row: Released) -> str:
    """Return the releases that a row stands for, in words; empty where it stands for all."""
    ends = (("from", row.first_release), ("to", row.last_release), ("since", row.since), ("before", row.until))
    return " ".join(f"{word} {end}" for word, end in ends if end)
