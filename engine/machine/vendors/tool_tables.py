"""What vendors' command-line tools print, as rows of text by column name."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

NO_ANSWERS = frozenset({"", "n/a", "[n/a]", "[not supported]", "[unknown error]", "not supported", "unknown", "none"})
MEBIBYTE = 1 << 20


def csv_rows(text: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a comma-separated table with a header; units in brackets stay in the names."""
    reader = csv.DictReader(text.strip().splitlines(), skipinitialspace=True)
    return tuple({str(key).strip(): str(value or "").strip() for key, value in row.items()} for row in reader)


def first_value(row: Mapping[str, str], *names: str) -> str | None:
    """Return the first of several columns that holds an answer."""
    values = (row[name] for name in names if name in row)
    return next((text for text in values if text.strip().lower() not in NO_ANSWERS), None)


def number(row: Mapping[str, str], *names: str) -> float | None:
    """Return the first of several columns as a number, whatever unit stands behind it."""
    text = first_value(row, *names)
    match = re.match(r"\(?([\d.]+)", text) if text else None
    return float(match[1]) if match else None
