"""How long hardware is used: a part of each day, week or month, and the span that its bill is of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.plan.line.lexicon.numerals import counted_tokens
from capacity_tui.engine.plan.line.lexicon.quantities import duration_of, sum_of
from capacity_tui.engine.plan.line.lexicon.tokens import PLAIN_COUNT, Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import SHORTEST
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import HOUR_SECONDS, parse_quantity

DAY_HOURS = 24.0
_DAY, _WEEK_HOURS, _USUAL = DAY_HOURS * HOUR_SECONDS, 7 * DAY_HOURS, "a month"
_PART_OF_A_SPAN = re.compile(r"(\d+(?:\.\d+)?[a-z]*)/([a-z]+)", re.IGNORECASE)  # 8h/day, 5days/week
_SUM_OF_A_SPAN = re.compile(r"\$?/(\w+)")  # $/month
_LONGEST = 3  # Words that say how long hardware is used, as ``9 to 5``


@dataclass(frozen=True, slots=True)
class RentedTime:
    """How long hardware is used."""

    hours_a_day: float = DAY_HOURS
    seconds: float = 0.0  # the span that a bill is of; 0 where none is asked for
    words: str = ""  # that span, as it is written


def hours_a_day(tokens: Sequence[Token], index: int) -> tuple[int, float] | None:
    """Return how many words say when hardware is used, and the hours of a day on average; None for other words.

    As in ``8 hours a day``, ``5 days a week``, ``business hours`` and ``24/7``.
    """
    texts = [token.text.casefold() for token in tokens[index : index + _LONGEST]]
    for words in range(len(texts), 0, -1):
        text = " ".join(texts[:words])
        if hours := vocabulary().hours_of_weeks.get(text, 0.0):
            return words, hours / _WEEK_HOURS * DAY_HOURS
        match = _PART_OF_A_SPAN.fullmatch(f"{texts[0]}/{''.join(texts[1:])}" if words > 1 else text)
        part = duration_of(match[1]) if match else None
        spans = (f"{match[2]}", f"per{match[2]}") if match else ()
        span = next(filter(None, map(vocabulary().adverbs.get, map(key_of, spans))), 0)
        if part and span >= _DAY and (share := parse_quantity(part, "s") / span) < 1 and len(texts[:words]) == words:
            return words, share * DAY_HOURS
    return None


def rented_time(text: str, catalog: Catalog | None = None) -> RentedTime:
    """Return how long the hardware of a line is used: a month of all that asks what it costs and says no other span."""
    tokens = counted_tokens(text, catalog or load_catalog())
    daily = ((index, hours_a_day(tokens, index)) for index in range(len(tokens)))
    used = {index: hours for index, hours in daily if hours is not None}
    behind = {at for index, (words, _) in used.items() for at in range(index, index + words)}
    spans = (_span_at(tokens, index) for index in range(len(tokens)) if index not in behind)
    seconds, first, last = next(filter(None, spans), (0.0, 0, 0))
    words = text[tokens[first].start : tokens[last].end] if seconds else ""
    if used and not seconds and any(key_of(token.text) in vocabulary().bills for token in tokens):
        seconds, words = float(vocabulary().adverbs["monthly"]), _USUAL
    return RentedTime(DAY_HOURS * prod(hours / DAY_HOURS for _, hours in used.values()), seconds, words)


def lasts(tokens: Sequence[Token], index: int) -> float:
    """Return the seconds that something is served for: ``for 3 months``, ``over the weekend``; 0 for other words."""
    words, text = vocabulary(), tokens[index].text
    span = duration_of(text) or words.deadlines.get(key_of(text))
    before = [key_of(token.text) for token in tokens[max(index - 2, 0) : index]]
    before = before[:-1] if before[-1:] and before[-1] in words.single else before
    return parse_quantity(span, "s") if span and before[-1:] and before[-1] in words.as_long_as else 0.0


def _span_at(tokens: Sequence[Token], index: int) -> tuple[float, int, int] | None:
    """Return the seconds of a span that a bill may be of, and its first and last word: ``per month``, ``3 months``."""
    words, text = vocabulary(), tokens[index].text
    before = tokens[index - 1].text if index else ""
    if (seconds := lasts(tokens, index)) >= HOUR_SECONDS:
        return seconds, index, index
    is_bare_sum = (sum_of(before) or ("", 1.0))[1] == 0  # $2k monthly, but $2/h, monthly
    is_count = PLAIN_COUNT.fullmatch(before) is not None and before[-1] in "kKmM"  # a plain number may end a name
    if key_of(before) in words.amounts or is_count or is_bare_sum:
        return None  # 1M requests per month, 2k monthly
    of_a_span = _SUM_OF_A_SPAN.fullmatch(text)
    for few in (2, 1):
        key = f"per{of_a_span[1]}" if of_a_span else "".join(token.text for token in tokens[index : index + few])
        seconds = words.adverbs.get(key_of(key), 0)
        if seconds >= _DAY and (len(key) >= SHORTEST or not key.isascii()):
            return float(seconds), index, index if of_a_span else index + few - 1
    return None
