"""Finds in a command's output what it got done: by an expression, or by a key of JSON."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass

from capacity_tui.engine.catalog.rows import NUMBER
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.observe.logs import UserExpression

_KEY = "json:"
_METRIC = "metric"
_FIRST_NUMBER = re.compile(NUMBER, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OutputMetric:
    """How a number is found in output; the last one counts.

    Attributes:
        text: as it was given.
        pattern: of a line: its first group is the number, or the first number in it without a group. None for a key.
    """

    text: str
    pattern: re.Pattern[str] | None

    def find(self, output: str) -> float | None:
        """Return the number, None where there is none."""
        if self.pattern is None:
            return self._find_key(output)
        matches = deque(self.pattern.finditer(output), maxlen=1)
        if not matches:
            return None
        number = _FIRST_NUMBER.search(matches[0][1] or "" if self.pattern.groups else matches[0][0])
        return None if number is None else float(number[0].replace(",", "").replace("_", ""))

    def _find_key(self, output: str) -> float | None:
        by_key = UserExpression(None, self.text.removeprefix(_KEY), _METRIC)
        lines = [output] if _is_json(output) else output.splitlines()
        values = (by_key.find(" ".join(line.split())) for line in reversed(lines))
        return next((numbers[_METRIC] for numbers in values if numbers), None)


def parse_output_metric(text: str) -> OutputMetric:
    """Return how a number is found: ``json:KEY`` with points between the names of inner objects, or an expression.

    Raises:
        CapacityError: it is neither.
    """
    if text.startswith(_KEY):
        if not text.removeprefix(_KEY):
            raise CapacityError("no key behind json:", hint="write json:KEY, such as json:patterns")
        return OutputMetric(text, None)
    try:
        return OutputMetric(text, re.compile(text, re.MULTILINE))
    except re.error as error:
        raise CapacityError(f"{text!r} is no regular expression", str(error)) from None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
