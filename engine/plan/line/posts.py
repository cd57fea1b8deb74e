"""Posts: texts of some clauses that tell more than they ask, of which what means nothing is left out, and said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.question_words import asks_for_memory
from capacity_tui.engine.plan.line.lexicon.similarity import is_plain
from capacity_tui.engine.plan.line.lexicon.tokens import split
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import (
    FIT,
    GIVEN_TWICE,
    NO_LIMIT,
    OF_WHAT,
    UNCOUNTED,
    UNKNOWN_OPTION,
    OneLine,
    Word,
)

_FEWEST_WORDS, _FEWEST_PLAIN, _FEWEST_CLAUSES = 20, 10, 2  # Of a post: words, those of plain language, clauses
_FEWEST_OF_A_CLAUSE = 2  # Words of a clause that tells something
_OF_NO_PLAN = frozenset({OF_WHAT, UNCOUNTED, NO_LIMIT, UNKNOWN_OPTION, settings.NO_FIELD})
_ASKED_FOR = frozenset({hardware.NAME, hardware.DEVICES})
LATENCIES = frozenset({Key.INFERENCE_TTFT_SECONDS, Key.INFERENCE_TPOT_SECONDS, Key.INFERENCE_REQUEST_SECONDS})


def without_asides(line: OneLine) -> OneLine:
    """Return a post that names its model, and its hardware or asks for it, without what means nothing in it.

    Other lines are returned as they are. A word that is compared may be a name, and a time that must be kept is one.
    """
    if not _is_readable(line):
        return line
    return line.without([word for word in _told(line) if _is_aside(word, line)])


def without_speeds(line: OneLine) -> OneLine:
    """Return a post without the speeds of several runs that it tells of, none of which has to be kept."""
    twice = {path for word in line.words for path in LATENCIES if word.wrong == f"{path} {GIVEN_TWICE}"}
    if not twice or not _is_readable(line):
        return line
    wrong = {f"{path} {GIVEN_TWICE}" for path in twice}
    speeds = [word for word in line.words if word.meaning.values.keys() & twice or word.wrong in wrong]
    return line.without(speeds, "left out, as measured") if all(map([*_told(line)].__contains__, speeds)) else line


def _is_readable(line: OneLine) -> bool:
    return bool(line.faults) and _is_named(line) and is_post(line.text)


def _told(line: OneLine) -> Iterator[Word]:
    """Yield the words of a line that stand in no clause of what must hold."""
    places = [place for place in clauses_in(line.text) if says(line.text[slice(*place)], "binding")]
    return (word for word in line.words if not any(start <= word.start < end for start, end in places))


def is_post(text: str) -> bool:
    """Return whether a text tells something in several clauses, with words enough of plain language."""
    keys = keys_of(text)
    told = [place for place in clauses_in(text) if len(keys_of(text[slice(*place)])) >= _FEWEST_OF_A_CLAUSE]
    return len(keys) >= _FEWEST_WORDS and len(told) >= _FEWEST_CLAUSES and sum(map(_is_prose, keys)) >= _FEWEST_PLAIN


def are_plain(keys: Collection[str]) -> bool:
    """Return whether most words that begin with no digit are of plain language, as those of other scripts are."""
    named = [key for key in keys if not key[:1].isdigit()]
    return 2 * sum(map(_is_prose, named)) >= len(named)


def _is_prose(key: str) -> bool:
    return not key[:1].isdigit() and (not key.isascii() or key in vocabulary().joints or is_plain(key))


def keys_of(clause: str) -> list[str]:
    """Return the words of a clause as lists have them."""
    return [key_of(token.text) for token in split(clause)]


def says(clause: str, group: str) -> bool:
    """Return whether a clause has a word of a group of those about solving, which may be of two."""
    keys = keys_of(clause)
    return not vocabulary().solving[group].isdisjoint({*keys, *map("".join, pairwise(keys))})


def clauses_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the clauses of a line begin and end: at marks, and before words of contrast."""
    start = 0
    for mark in _clause_ends().finditer(text):
        yield start, mark.end()
        start = mark.end()
    yield start, len(text)


@cache
def _clause_ends() -> re.Pattern[str]:
    contrasting = "|".join(sorted(vocabulary().contrasting))
    return re.compile(rf"[.:](?=\s|$)|[!?;,](?!\d)|[。？！；]|\s[-–—]+\s|\s(?=(?:{contrasting})\s)", re.IGNORECASE)


def _is_named(line: OneLine) -> bool:
    """Whether a line names a model that is no guess, and hardware, or asks for that or for memory."""
    whys = [entry.why for entry in line.assumptions if entry.key == models.MODEL and models.OF_A_SHAPE not in entry.why]
    guessed = line.task != FIT and bool(whys)  # names of algorithms are whole
    asks = line.asked is not None and line.asked.solve in _ASKED_FOR
    has_hardware = line.has(hardware.NAME) or asks or asks_for_memory(line.text)
    return line.has(models.MODEL) and has_hardware and not guessed


def _is_aside(word: Word, line: OneLine) -> bool:
    """Whether a word of a post means nothing in it: an unknown one, a number of nothing, what is no plan's."""
    if word.text in line.unknown:
        before, after = line.text[: word.start].split()[-1:], line.text[word.end :].split()[:1]
        return vocabulary().comparing.isdisjoint(map(key_of, (*before, *after)))
    return word.wrong in _OF_NO_PLAN or settings.OF_OTHER_TASKS in word.wrong
