"""How long hardware is used: hours of each day, and the span that its bill is of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.plan.line.lexicon.numerals import counted_tokens
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, sum_of
from capacity_tui.engine.plan.line.lexicon.tokens import PLAIN_COUNT, Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import HOUR_SECONDS, parse_quantity

DAY_HOURS = 24.0
_DAY = DAY_HOURS * HOUR_SECONDS
_HOURS_A_DAY = re.compile(r"(\d+(?:\.\d+)?h)(?:/d|/day)", re.IGNORECASE)
_SUM_OF_A_SPAN = re.compile(r"\$?/(\w+)")  # $/month


@dataclass(frozen=True, slots=True)
class RentedTime:
    """How long hardware is used."""

    hours_a_day: float = DAY_HOURS
    seconds: float = 0.0  # the span that a bill is of; 0 where none is asked for
    words: str = ""  # that span, as it is written


def hours_a_day(tokens: Sequence[Token], index: int) -> tuple[int, float] | None:
    """Return how many words say how many hours of each day hardware is used, and the hours; None for other words."""
    glued = _HOURS_A_DAY.fullmatch(tokens[index].text)
    span = duration_of(glued[1] if glued else tokens[index].text) or ""
    keys = [key_of(token.text) for token in tokens[index + 1 : index + 3]]
    adverbs = (few for few in (2, 1) if vocabulary().adverbs.get("".join(keys[:few])) == _DAY)
    words = 1 if glued else 1 + next(adverbs, -1)
    hours = parse_quantity(span, "s") / HOUR_SECONDS if span.endswith("h") else 0.0
    return (words, hours) if words and 0 < hours < DAY_HOURS else None


def rented_time(text: str, catalog: Catalog | None = None) -> RentedTime:
    """Return how long the hardware of a line is used."""
    tokens = counted_tokens(text, catalog or load_catalog())
    daily = ((index, hours_a_day(tokens, index)) for index in range(len(tokens)))
    used = {index: hours for index, hours in daily if hours is not None}
    behind = {at for index, (words, _) in used.items() for at in range(index, index + words)}
    spans = (_span_at(tokens, index) for index in range(len(tokens)) if index not in behind)
    seconds, first, last = next(filter(None, spans), (0.0, 0, 0))
    words = text[tokens[first].start : tokens[last].end] if seconds else ""
    return RentedTime(next((hours for _, hours in used.values()), DAY_HOURS), seconds, words)


def _span_at(tokens: Sequence[Token], index: int) -> tuple[float, int, int] | None:
    """Return the seconds of a span that a bill may be of, and its first and last word: ``per month``, ``3 months``."""
    words, text = vocabulary(), tokens[index].text
    before = tokens[index - 1].text if index else ""
    span, of_a_span = duration_of(text), _SUM_OF_A_SPAN.fullmatch(text)
    if span is not None and span.endswith("d") and key_of(before) in words.as_long_as:
        return parse_quantity(span, "s"), index, index
    if key_of(before) in words.amounts or PLAIN_COUNT.fullmatch(before) or sum_of(before):
        return None  # 1M requests per month, 2k monthly
    for few in (2, 1):
        key = f"per{of_a_span[1]}" if of_a_span else "".join(token.text for token in tokens[index : index + few])
        seconds = words.adverbs.get(key_of(key), 0)
        if seconds >= _DAY:
            return float(seconds), index, index if of_a_span else index + few - 1
    return None
