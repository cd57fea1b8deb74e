"""Writes what fits found into ``profiles/``, changing no other byte of a file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.calibrate.constants import Constant
from tools.calibrate.ranges import WIDENING, Range, UnseenRun

PROFILES = Path(__file__).parents[2] / "profiles"
DIGITS = 3
CHECKED = "2026-11-21"


def shown(value: float) -> str:
    """Return a value as files hold it, with three digits."""
    return f"{float(f'{value:.{DIGITS}g}'):g}"


def replaced(text: str, row: str, field: str, value: float) -> str:
    """Return YAML text with another value of one field of one row.

    Raises:
        KeyError: the text has no such row or field.
    """
    name, _, key = field.partition(".")
    block = re.search(rf"(?ms)^{re.escape(row)}:\n(.*?)(?=^\S|\Z)", text)
    if block is None:
        raise KeyError(row)
    number = "[-+0-9.e]+"
    if key.isdigit():
        pattern = rf"^(  {name}: \[(?:[^,\]]*,\s*){{{key}}}){number}"
    elif key:
        pattern = rf"^(  {name}: .*?\b{key}: ){number}"
    else:
        pattern = rf"^(  {name}: ){number}"
    body, count = re.subn(pattern, lambda match: match.group(1) + shown(value), block.group(1), flags=re.MULTILINE)
    if not count:
        raise KeyError(f"{row}.{field}")
    return text[: block.start(1)] + body + text[block.end(1) :]


def write_constants(values: Mapping[Constant, float], profiles: Path = PROFILES) -> None:
    """Write fitted values into the rows that hold them."""
    for constant, value in values.items():
        path = profiles / f"{constant.table}.yaml"
        text = path.read_text("utf-8")
        for row in constant.rows:
            text = replaced(text, row, constant.field, value)
        path.write_text(text, "utf-8")


def write_ranges(ranges: Mapping[str, Range], profiles: Path = PROFILES) -> None:
    """Write the range of each class of runs into ``reliability.yaml``."""
    path = profiles / "reliability.yaml"
    text = path.read_text("utf-8")
    for name, row in ranges.items():
        block = (
            f"{name}:\n"
            f"  name: {name.replace('-', ', ')}\n"
            f"  low: {row.low:.{DIGITS}g}\n  high: {row.high:.{DIGITS}g}\n"
            f"  measurements: {row.measurements}\n  publishers: {row.publishers}\n  widening: {WIDENING}\n"
            f"  hardware: [{', '.join(row.hardware)}]\n  frameworks: [{', '.join(row.frameworks)}]\n"
            "  source: profiles/measurements, each publisher left out of the fit in turn\n"
            f"  checked: {CHECKED}\n  confidence: B\n"
        )
        text = re.sub(rf"(?ms)^{name}:\n.*?(?=^\S|\Z)", "", text).rstrip("\n") + "\n" + block
    path.write_text(text, "utf-8")


def write_unseen(runs: Iterable[UnseenRun], profiles: Path = PROFILES) -> None:
    """Write ``fits/unseen.csv``: what was predicted without each run's publisher."""
    rows = [
        (
            each.run.measurement.kind,
            each.run.measurement.id,
            *(f"{number:.4g}" for number in (each.estimated, each.value, each.low, each.high)),
        )
        for each in runs
    ]
    _write_table(profiles / "fits" / "unseen.csv", ("kind", "id", "estimated", "unseen", "low", "high"), rows)


def write_evidence(rows: Iterable[Sequence[str]], profiles: Path = PROFILES) -> None:
    """Write ``fits/constants.csv``: what each fitted constant rests on."""
    heads = ("fits", "name", "field", "value", "prior", "runs", "publishers", "learned")
    _write_table(profiles / "fits" / "constants.csv", heads, rows)


def _write_table(path: Path, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heads)
        table.writerows(rows)
