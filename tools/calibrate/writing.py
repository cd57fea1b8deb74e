"""Writes what fits found into ``profiles/``, changing no other byte of a file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from capacity_tui.engine.uncertainty.user_runs import FILE, LAYOUT, NUMBERS, SPLITS, WORDS, Bin
from capacity_tui.engine.units import PERCENT
from tools.calibrate.constants import Constant
from tools.calibrate.ranges import RangesOfFigure, UnseenRun
from tools.calibrate.spreads import ANY

ROOT = Path(__file__).parents[2]
PROFILES, GOLDEN = ROOT / "profiles", ROOT / "tests" / "golden"
DIGITS = 3


def shown(value: float) -> str:
    """Return a value as files hold it, with three digits."""
    return f"{float(f'{value:.{DIGITS}g}'):g}"


def replaced(text: str, row: str, field: str, value: float) -> str:
    """Return YAML text with another value of one field of one row; one that it has from the row it is like is added.

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
    if not count and not key:
        line = rf"\g<0>  {name}: {shown(value)}\n"
        body, count = re.subn(r"^  like: .*\n", line, block.group(1), count=1, flags=re.MULTILINE)
    if not count:
        raise KeyError(f"{row}.{field}")
    return text[: block.start(1)] + body + text[block.end(1) :]


def inherits(text: str, row: str, field: str) -> bool:
    """Return whether a row of YAML text is like another and does not state a field of its own."""
    block = re.search(rf"(?ms)^{re.escape(row)}:\n(.*?)(?=^\S|\Z)", text)
    name = field.partition(".")[0]
    return block is not None and "\n  like: " in f"\n{block[1]}" and f"\n  {name}: " not in f"\n{block[1]}"


def write_constants(values: Mapping[Constant, float], profiles: Path = PROFILES) -> None:
    """Write fitted values into the rows that hold them."""
    for constant, value in values.items():
        path = profiles / f"{constant.table}.yaml"
        text = path.read_text("utf-8")
        for row in constant.rows:
            if not inherits(text, row, constant.field):
                text = replaced(text, row, constant.field, value)
        path.write_text(text, "utf-8")


def write_ranges(found: Iterable[RangesOfFigure], profiles: Path = PROFILES) -> None:
    """Write spreads into ``reliability.yaml``, and what was published of each figure into ``fits/published.csv``."""
    path = profiles / "reliability.yaml"
    text = path.read_text("utf-8")
    cells: list[tuple[object, ...]] = []
    for each in found:
        fitted = each.fitted
        for name, values in (("spreads", fitted.spreads), ("distances", fitted.distances)):
            for key, value in values.items():
                text = replaced(text, each.row, f"{name}.{key}", value)
        publishers = {run.publisher for run in each.errors.samples}
        runs = sum(not run.withheld for run in each.errors.samples)
        (below, above), kinds = fitted.ends[ANY], {kind: ends for kind, ends in fitted.ends.items() if kind != ANY}
        for field, value in (
            ("below", below), ("above", above), ("measurements", runs), ("publishers", len(publishers)),
        ):  # fmt: skip
            text = replaced(text, each.row, field, value)
        of_kinds = ", ".join(f"{kind}: [{shown(low)}, {shown(high)}]" for kind, (low, high) in kinds.items())
        text = worded(text, each.row, "kinds", f"{{{of_kinds}}}")
        text = worded(text, each.row, "source", "profiles/measurements, each publisher left out of the fit in turn")
        text = worded(text, each.row, "confidence", "B")
        cells += [
            _cell_cells(each.row, cell) for cell in sorted(each.cells, key=lambda cell: (cell.publisher, cell.text))
        ]
    path.write_text(text, "utf-8")
    ends = [f"{name}_{end}" for name in NUMBERS for end in ("low", "high")]
    _renew_table(profiles / "fits" / FILE, ("figure", "publisher", *WORDS, LAYOUT, *ends, "runs"), 1, cells)


def _cell_cells(figure: str, cell: Bin) -> tuple[object, ...]:
    ends = [f"{side[name]:g}" if name in side else "" for name in NUMBERS for side in (cell.low, cell.high)]
    layout = "+".join(name for name in SPLITS if name in cell.splits)
    return (figure, cell.publisher, *(cell.words.get(name, "") for name in WORDS), layout, *ends, cell.runs)


def worded(text: str, row: str, field: str, words: str) -> str:
    """Return YAML text with other words in one field of one row."""
    return re.sub(rf"(?ms)(^{re.escape(row)}:\n(?:  [^\n]*\n)*?  {field}: )[^\n]*", rf"\g<1>{words}", text, count=1)


def write_unseen(runs: Iterable[UnseenRun], profiles: Path = PROFILES, golden: Path = GOLDEN) -> None:
    """Write ``fits/unseen.csv``: what was predicted without each run's publisher, and without further groups.

    What is beside a prediction is in percent of it. What was estimated of the runs then is kept for tests alone.
    """
    of_run: dict[tuple[str, str], dict[bool, UnseenRun]] = {}
    for each in runs:
        of_run.setdefault((each.run.measurement.kind, each.run.measurement.id), {})[each.withheld] = each
    rows, estimated = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for key, ways in of_run.items():
        named, unnamed = ways[False], ways.get(True)
        apart = [_tenths(number, named.value) for number in named.apart or ()] or ["", ""]
        withheld = ["", "", ""] if unnamed is None else [_tenths(unnamed.value, named.value), *_ends(unnamed)]
        rows.append((*key, f"{named.value:.4g}", *_ends(named), *apart, *withheld))
        estimated.append((*key, f"{named.estimated:.4g}"))
    heads = "kind id unseen low high without_software without_hardware unnamed unnamed_low unnamed_high"
    _renew_table(profiles / "fits" / "unseen.csv", heads.split(), 1, rows)
    _renew_table(golden / "when_fitted.csv", ("kind", "id", "estimated"), 1, estimated)


def _ends(run: UnseenRun) -> tuple[str, str]:
    """Return the ends of a range in percent, to three digits: shares of runs inside and widths are made of them."""
    return f"{PERCENT * run.low / run.value:.{DIGITS}g}", f"{PERCENT * run.high / run.value:.{DIGITS}g}"


def _tenths(number: float, of: float) -> str:
    """Return a prediction in percent of another, to tenths, as errors are shown."""
    return f"{round(PERCENT * number / of, 1):g}"


def write_evidence(rows: Iterable[Sequence[str]], profiles: Path = PROFILES) -> None:
    """Write ``fits/constants.csv``: what each fitted constant rests on."""
    heads = ("fits", "name", "field", "value", "prior", "runs", "publishers", "learned")
    _renew_table(profiles / "fits" / "constants.csv", heads, 3, rows)


def _renew_table(path: Path, heads: Sequence[str], key: int, rows: Iterable[Sequence[object]]) -> None:
    """Write rows in place of those that begin with the same words.

    Args:
        path: file.
        heads: its columns.
        key: how many of them say what a row is of.
        rows: what is new; rows of anything else stay.
    """
    path.parent.mkdir(exist_ok=True)
    found: dict[tuple[str, ...], list[Sequence[object]]] = {}
    for row in rows:
        found.setdefault(tuple(map(str, row[:key])), []).append(row)
    known = list(csv.reader(path.read_text("utf-8").splitlines()))[1:] if path.exists() else []
    whole: dict[tuple[str, ...], list[Sequence[object]]] = {}
    for old in known:
        whole.setdefault(tuple(old[:key]), []).append(old)
    whole.update(found)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heads)
        table.writerows(row for group in whole.values() for row in group)
