"""Posts: texts of some clauses that tell more than they ask, of which what means nothing is left out, and said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.plan.line.lexicon import hardware_words as hardware
from capacity_tui.engine.plan.line.lexicon import model_words as models
from capacity_tui.engine.plan.line.lexicon import setting_words as settings
from capacity_tui.engine.plan.line.lexicon.question_words import asks_for_memory
from capacity_tui.engine.plan.line.lexicon.similarity import is_like_name, is_plain, unknown_words
from capacity_tui.engine.plan.line.lexicon.tokens import split
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import FIT, NO_LIMIT, OF_WHAT, UNCOUNTED, OneLine, Word

_FEWEST_WORDS, _FEWEST_PLAIN, _FEWEST_CLAUSES = 20, 10, 2  # Of a post: words, those of plain language, clauses
_NEAR = 2  # Words between a number and the hardware that it may count
_FEWEST_OF_A_CLAUSE = 2  # Words of a clause that tells something
_OF_NO_PLAN = frozenset({OF_WHAT, UNCOUNTED, NO_LIMIT})
_ASKED_FOR = frozenset({hardware.NAME, hardware.DEVICES})
_NAMES = frozenset({models.MODEL, hardware.NAME})


def without_asides(line: OneLine, catalog: Catalog) -> OneLine:
    """Return a post that names its model, and its hardware or asks for it, without what means nothing in it.

    Other lines are returned as they are. What is compared may be a name, and what must hold or how much is to be done
    is no aside.
    """
    if not (line.faults and _is_named(line) and is_post(line.text)):
        return line
    telling = (place for place in clauses_in(line.text) if not _states(line, *place))
    free = [word for start, end in telling for word in line.words if start <= word.start < end]
    rest = line.without([word for word in free if _is_aside(word, line, catalog)])
    if rest.unknown in ((), line.unknown):
        return rest
    known, renewed = line.fault_of_unknown, unknown_words({text: text for text in rest.unknown}, catalog)
    return replace(rest, faults=tuple(renewed if fault is known else fault for fault in rest.faults))


def _states(line: OneLine, start: int, end: int) -> bool:
    """Whether a clause says what must hold or how much is to be done, or names something with others."""
    clause = line.text[start:end]
    if len(keys_of(clause)) < _FEWEST_OF_A_CLAUSE:  # goal: 300
        return True
    names = any(word.meaning.values.keys() & _NAMES for word in line.words if start <= word.start < end)
    return says(clause, "binding") or says(clause, "amounting") or (names and says(clause, "joining"))


def is_post(text: str) -> bool:
    """Return whether a text tells something in several clauses, with words enough of plain language."""
    keys = keys_of(text)
    telling = [place for place in clauses_in(text) if len(keys_of(text[slice(*place)])) >= _FEWEST_OF_A_CLAUSE]
    return len(keys) >= _FEWEST_WORDS and len(telling) >= _FEWEST_CLAUSES and sum(map(_is_prose, keys)) >= _FEWEST_PLAIN


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


def _is_aside(word: Word, line: OneLine, catalog: Catalog) -> bool:
    """Whether a word of a post means nothing in it: one of no figures that is like no name, or a number of nothing.

    A number before a noun is of that, unless no plan of this task has a number of them; a share may be of the data.
    """
    if word.text not in line.unknown and word.wrong not in _OF_NO_PLAN and settings.OF_OTHER_TASKS not in word.wrong:
        return False
    at = line.words.index(word)
    before, behind = line.words[max(at - 1, 0) : at], line.words[at + 1 : at + 1 + _NEAR]
    if word.text in line.unknown and any(map(str.isalpha, word.text)):
        is_counted = any(other.text[-1:].isdigit() for other in before)
        is_narrated = all(part.isalpha() for part in re.split(r"['’.-]", word.text))
        return is_narrated and not is_counted and not is_like_name(word.text, catalog)
    if word.wrong == OF_WHAT:
        places = (place for place in clauses_in(line.text) if place[0] <= word.start < place[1])
        return any(says(line.text[slice(*place)], "parted") for place in places)
    noun = key_of(behind[0].text) if behind else ""
    amount = settings.amount_of(noun)
    is_of_other_tasks = amount is not None and not amount.field(line.task)
    counts = noun and noun not in vocabulary().joints and not is_of_other_tasks
    return not counts and all(hardware.NAME not in other.meaning.values for other in behind)
