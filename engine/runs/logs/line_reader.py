"""One line of a log of any program, or a page of metrics, read as figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property

from capacity_tui.engine.catalog import load_catalog, nearest
from capacity_tui.engine.catalog.rows import LOG_FIGURES, NUMBER, Key, RunLog, in_basic_units, key_of_name, pattern
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.record import dataclass

LONGEST_LINE = 1 << 16  # Characters of a line that are read
LONGEST_WORDS = 2048  # Characters in which expressions are searched: a line about a step is short

# Colours and movements of the cursor; titles of windows; control characters that files hold after a crash.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_DATE = re.compile(
    r"\b(?:(?P<year>\d{4})[-/])?(?P<month>[01]\d)[-/](?P<day>[0-3]\d)[ T]"
    r"(?P<hour>[0-2]\d):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?:[.,](?P<part>\d{1,9}))?"
)

_DATE_WITHIN = 120  # characters at the start of a line in which its time stands
_ANY_LEAP_YEAR = 2000
_ENOUGH = frozenset({"step", "epoch", "loss", "tokens_per_second", "prompt_tokens_per_second"})
"""Figures that say that a line was understood."""

_METRIC = re.compile(rf"(?P<name>[A-Za-z_:][\w:]*)(?:\{{[^}}]*\}})?\s+(?P<value>{NUMBER})(?:\s+\d+)?\s*", re.IGNORECASE)
_DIGIT = re.compile(r"\d|nan|inf", re.IGNORECASE)


class LineReader:
    """Reads lines as the programs of the catalogue write them; remembers the head of a table of columns.

    Args:
        rows: how programs write; those of the catalogue by default.
        expressions: the user's own expressions, which count before all others.
    """

    def __init__(self, rows: Iterable[RunLog] | None = None, expressions: Sequence[UserExpression] = ()) -> None:
        programs = tuple(load_catalog().run_logs.values() if rows is None else rows)
        self._expressions = expressions
        self._sure = [row for row in programs if not row.otherwise]
        self._otherwise = [row for row in programs if row.otherwise]
        self._summary_signs = tuple(sign for row in programs for sign in row.summary_signs)
        self.names = NamedValues(programs)
        self._columns: tuple[str, list[str]] | None = None

    def read(self, line: str) -> LogEntry | None:
        """Return the entry of a line; None where it has nothing about a run."""
        text = _TERMINAL.sub("", line[:LONGEST_LINE]).strip("\r\n\ufeff")
        if not _DIGIT.search(text):
            self._columns = self._head(text) or self._columns
            return None
        custom = {
            figure: number for expression in self._expressions for figure, number in expression.find(text).items()
        }
        figures, program, precision = self._parsed(text)
        if any(sign in text for sign in self._summary_signs):
            figures.pop("loss", None)
        if not custom and not figures and not precision:
            self._columns = self._head(text) or self._columns
            return None
        return LogEntry({**figures, **custom}, program, _time_of(text), precision)

    def _parsed(self, text: str) -> tuple[dict[str, float], str, str]:
        """Return figures, program and precision of a line."""
        named = self._named(text)
        figures, program = self.names.figures(named) if named else ({}, "")
        precision, text = "", text[:LONGEST_WORDS]
        for row in self._sure:
            if not any(sign in text for sign in row.signs):
                continue
            precision = precision or _precision(row, text)
            matched = _figures(row, text)
            program = program or (row.name if matched else "")
            figures = {**matched, **figures}
        for row in () if figures.keys() & _ENOUGH else self._otherwise:
            matched = _figures(row, text) if any(sign in text for sign in row.signs) else {}
            program = row.name if matched else program
            figures = {**matched, **figures}
        return figures, program, precision

    def _named(self, text: str) -> list[tuple[str, object]] | None:
        stripped = text.strip()
        named = named_in_line(stripped)
        if named is not None:
            return named
        metric = _METRIC.fullmatch(stripped)
        if metric is not None:
            return [(metric["name"], metric["value"])]
        if self._columns is None:
            return None
        separator, columns = self._columns
        cells = stripped.split(separator)
        return list(zip(columns, cells, strict=True)) if len(cells) == len(columns) else None

    def _head(self, text: str) -> tuple[str, list[str]] | None:
        """Return separator and names of the columns where a line is the head of a table with figures."""
        for separator in (",", "\t", ";"):
            cells = [cell.strip().strip('"') for cell in text.strip().split(separator)]
            if len(cells) > 1 and all(cells) and sum(map(self.names.knows, cells)) > 1:
                return separator, cells
        return None


def _figures(row: RunLog, text: str) -> dict[str, float]:
    if row.lines is not None and not re.search(row.lines, text, re.IGNORECASE):
        return {}
    figures: dict[str, float] = {}
    for figure, expressions in row.expressions.items():
        for expression in expressions:
            number = expression.find(text)
            if number is not None:
                figures[figure] = number
                break
    return figures


def _precision(row: RunLog, text: str) -> str:
    for precision, expressions in row.precisions.items():
        if any(re.search(expression, text, re.IGNORECASE) for expression in expressions):
            return precision
    return ""


def _time_of(text: str) -> float | None:
    """Return the time that stands at the start of a line, in seconds; only differences of two mean something."""
    match = _DATE.search(text, 0, _DATE_WITHIN)
    if match is None:
        return None
    month, day, hour, minute, second = (int(match[part]) for part in ("month", "day", "hour", "minute", "second"))
    try:
        moment = datetime(int(match["year"] or _ANY_LEAP_YEAR), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() + float(f"0.{match['part'] or 0}")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Figures of one line, record or page."""

    # by the names of ``LOG_FIGURES``, in basic units; at least one, unless there is a precision
    figures: Mapping[str, float]
    program: str  # the program that writes such lines, by the id of its row; empty for a user's own expression
    # the time the entry gives itself, in seconds of some clock; None where it gives none
    at_seconds: float | None = None
    precision: str = ""  # number format that the line says; empty where it says none


_PAIR = re.compile(rf"""['"]([^'"\n]{{1,200}})['"]\s*:\s*['"]?({NUMBER})(?=['"\s,}}\]]|$)""", re.IGNORECASE)
_NUMBER = re.compile(NUMBER, re.IGNORECASE)

# Averages over all steps, and figures of other work than the training itself.
_OTHER_WORK = frozenset({"eval", "evaluation", "val", "valid", "validation", "test"})

_DEEPEST = 8
_LONGEST_TEXT = 40


class NamedValues:
    """Finds figures by the names that programs give them; the first row that has a name counts."""

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
        return key_of_name(name) in self._known

    def figures(self, values: Iterable[tuple[str, object]]) -> tuple[dict[str, float], str]:
        """Return the figures among named values, nested ones with points between, and whose names they have."""
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
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT and _NUMBER.fullmatch(value.strip()):
        return in_basic_units(value.strip(), unit)
    return None


_JSON = re.compile(r"(?:(?P<figure>\w+)=)?json:(?P<key>.+)", re.DOTALL)
_FORMS = "a regular expression with a group such as (?P<loss>[0-9.]+), or loss=json:KEY"


class ExpressionError(CapacityError):
    """An expression for logs that cannot be used."""


@dataclass(frozen=True, slots=True)
class UserExpression:
    """Finds figures in lines."""

    # a regular expression whose groups are named as figures; None for a key of JSON lines
    pattern: re.Pattern[str] | None
    key: str = ""  # the key of JSON lines, with points between the names of inner objects
    figure: str = ""  # the figure that the key holds

    def find(self, line: str) -> dict[str, float]:
        """Return the figures that a line has, in basic units."""
        if self.pattern is None:
            return self._find_key(line)
        match = self.pattern.search(line)
        texts = {} if match is None else {name: text for name, text in match.groupdict().items() if text is not None}
        numbers = {figure: _first_number(text) for figure, text in texts.items()}
        return {figure: number for figure, number in numbers.items() if number is not None}

    def _find_key(self, line: str) -> dict[str, float]:
        start = line.find("{")
        if start < 0:
            return {}
        try:
            document = json.loads(line[start:])
        except (ValueError, RecursionError):
            return {}
        values = dict(flattened(document)) if isinstance(document, dict) else {}
        value = values.get(self.key)
        number = None if value is None or isinstance(value, bool) else _first_number(str(value))
        return {} if number is None else {self.figure: number}


def parse_user_expression(text: str) -> UserExpression:
    """Return the expression a user typed: a regular expression with named groups, or ``loss=json:KEY``.

    Raises:
        ExpressionError: it is neither, or names no figure.
    """
    by_key = _JSON.fullmatch(text)
    if by_key is not None:
        figure = by_key["figure"] or key_of_name(by_key["key"].rpartition(".")[2])
        return UserExpression(None, by_key["key"], _known(figure))
    try:
        expression = pattern(text)
    except ValueError as error:
        raise ExpressionError("the expression cannot be used", str(error), f"write {_FORMS}") from None
    if not expression.groupindex:
        raise ExpressionError("the expression names no figure", text[:80], f"write {_FORMS}")
    for name in expression.groupindex:
        _known(name)
    return UserExpression(expression)


def _known(figure: str) -> str:
    if figure not in LOG_FIGURES:
        near = nearest(figure, list(LOG_FIGURES)) or list(LOG_FIGURES)
        raise ExpressionError(f"no figure of logs is called {figure!r}"[:120], hint=f"known: {', '.join(near)}")
    return figure


def _first_number(text: str) -> float | None:
    match = _NUMBER.search(text)
    return None if match is None else in_basic_units(match[0], "number")


# A share is the same for all engines of a page, whereas what they count adds up.
_SHARE = re.compile(r"_(?:perc|ratio|usage)$")

_METRIC = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>(?:[^}\"]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*"
)

_BUCKET, _SUM, _COUNT = "_bucket", "_sum", "_count"


def read_metrics(text: str, before: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the numbers of a page by name, added up over labels, and what a later page is compared with.

    Of a histogram the mean of what came since the page before is given under its own name.
    """
    totals: dict[str, float] = {}
    for line in text.splitlines():
        match = None if line.startswith("#") else _METRIC.fullmatch(line.strip())
        if match is None or match["name"].endswith(_BUCKET):
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if math.isfinite(value):
            name, known = match["name"], totals.get(match["name"], 0.0)
            totals[name] = max(known, value) if _SHARE.search(name) else known + value
    means: dict[str, float] = {}
    for name, total in totals.items():
        base = name.removesuffix(_SUM)
        if base != name and base + _COUNT in totals:
            count = totals[base + _COUNT] - before.get(base + _COUNT, 0.0)
            change = total - before.get(name, 0.0)
            if count > 0 and change >= 0:
                means[base] = change / count
    return {**totals, **means}, totals
