"""What vendors' command-line tools print, as rows of text by column name."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping

NO_ANSWERS = frozenset({"", "n/a", "[n/a]", "[not supported]", "[unknown error]", "not supported", "unknown", "none"})
MEBIBYTE = 1 << 20


def csv_rows(text: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a comma-separated table with a header; units in brackets stay in the names."""
    reader = csv.DictReader(text.strip().splitlines(), skipinitialspace=True)
    return tuple({str(key).strip(): str(value or "").strip() for key, value in row.items()} for row in reader)


def json_cards(text: str) -> tuple[dict[str, str], ...]:
    """Return the cards of ``rocm-smi --json``, in the order of their numbers; warnings before it are skipped.

    Raises:
        ValueError: this is no such table.
    """
    start = text.find("{")
    loaded = json.loads(text[start:]) if start >= 0 else None
    if not isinstance(loaded, dict):
        raise ValueError("no table of cards")
    cards = ((int(name[4:]), row) for name, row in loaded.items() if re.fullmatch(r"card\d+", name))
    return tuple({str(key): str(value) for key, value in row.items()} for _, row in sorted(cards, key=lambda p: p[0]))


def told(row: Mapping[str, str], *names: str) -> str | None:
    """Return the first of several columns that holds an answer."""
    found = (row[name] for name in names if name in row)
    return next((text for text in found if text.strip().lower() not in NO_ANSWERS), None)


def number(row: Mapping[str, str], *names: str) -> float | None:
    """Return the first of several columns as a number, whatever unit stands behind it."""
    text = told(row, *names)
    found = re.match(r"\(?([\d.]+)", text) if text else None
    return float(found[1]) if found else None


def topology_matrix(text: str) -> tuple[tuple[str, ...], ...]:
    """Return accelerators against accelerators as ``nvidia-smi topo -m`` prints them; empty if it holds none."""
    rows = [line.split() for line in text.splitlines() if re.match(r"GPU\d+\s", line)]
    count = len(rows)
    return tuple(tuple(row[1 : count + 1]) for row in rows) if all(len(row) > count for row in rows) else ()


def mig_profiles(text: str) -> dict[int, tuple[str, ...]]:
    """Return the MIG profiles of each GPU as ``nvidia-smi -L`` lists them, such as ``3g.40gb``."""
    found: dict[int, tuple[str, ...]] = {}
    current = -1
    for line in text.splitlines():
        gpu, profile = re.match(r"GPU (\d+):", line), re.match(r"\s+MIG (\S+)\s+Device", line)
        if gpu:
            current = int(gpu[1])
        elif profile and current >= 0:
            found[current] = (*found.get(current, ()), profile[1])
    return found
