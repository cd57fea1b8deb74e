"""One line of a log of any program, read as figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows import NUMBER, RunLog
from capacity_tui.engine.observe.logs.entry import LogEntry
from capacity_tui.engine.observe.logs.named_values import NamedValues, named_in_line
from capacity_tui.engine.observe.logs.user_expression import UserExpression

LONGEST_LINE = 1 << 16
"""Characters of a line that are read."""
LONGEST_WORDS = 2048
"""Characters in which expressions are searched: a line about a step is short."""

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
