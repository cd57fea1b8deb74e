"""A user's own expression for logs that nobody else writes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.catalog.rows import LOG_FIGURES, NUMBER, in_basic_units, key_of_name, pattern
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.observe.logs.named_values import flattened

_JSON = re.compile(r"(?:(?P<figure>\w+)=)?json:(?P<key>.+)", re.DOTALL)
_FIRST_NUMBER = re.compile(NUMBER, re.IGNORECASE)
_FORMS = "a regular expression with a group such as (?P<loss>[0-9.]+), or loss=json:KEY"


class ExpressionError(CapacityError):
    """An expression for logs that cannot be used."""


@dataclass(frozen=True, slots=True)
class UserExpression:
    """Finds figures in lines.

    Attributes:
        pattern: a regular expression whose groups are named as figures; None for a key of JSON lines.
        key: the key of JSON lines, with points between the names of inner objects.
        figure: the figure that the key holds.
    """

    pattern: re.Pattern[str] | None
    key: str = ""
    figure: str = ""

    def find(self, line: str) -> dict[str, float]:
        """Return the figures that a line has, in basic units."""
        if self.pattern is None:
            return self._find_key(line)
        match = self.pattern.search(line)
        texts = {} if match is None else {name: text for name, text in match.groupdict().items() if text is not None}
        numbers = {figure: _number(text) for figure, text in texts.items()}
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
        number = None if value is None or isinstance(value, bool) else _number(str(value))
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
        raise ExpressionError("an expression cannot be used", str(error), f"write {_FORMS}") from None
    if not expression.groupindex:
        raise ExpressionError("an expression names no figure", text[:80], f"write {_FORMS}")
    for name in expression.groupindex:
        _known(name)
    return UserExpression(expression)


def _known(figure: str) -> str:
    if figure not in LOG_FIGURES:
        near = nearest(figure, list(LOG_FIGURES)) or list(LOG_FIGURES)
        raise ExpressionError(f"no figure of logs is called {figure!r}"[:120], hint=f"known: {', '.join(near)}")
    return figure


def _number(text: str) -> float | None:
    match = _FIRST_NUMBER.search(text)
    return None if match is None else in_basic_units(match[0], "number")
