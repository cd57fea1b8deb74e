"""What a line says that goes into no plan: each such word is said, so that nothing of a line is lost silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import Meaning
from capacity_tui.engine.plan.line.tokens import Token

_NOTHING = Meaning()
_ONE, _NOT = 1, "not"
_LOADS = (Key.INFERENCE_USERS, Key.INFERENCE_CONCURRENCY, Key.INFERENCE_REQUEST_RATE)
_FARTHEST = 3  # Words between one that asks and what it asks for, as in ``how many busy users``


def remainder(
    tokens: Sequence[Token],
    taken: Mapping[int, tuple[int, Meaning]],
    task: str,
    fields: set[str],
    traits: set[str],
    unanswered: Mapping[str, None],
) -> str:
    """Return the words of a line that bear on a plan and went into none, in a few words; empty where none did.

    Args:
        tokens: words of the line.
        taken: how many words from each place on were taken together, and for what.
        task: what is done.
        fields: paths that the line says, or asks for.
        traits: keys of words that are true of the model or the hardware anyway.
        unanswered: words that ask for what is not solved for.
    """
    keys = [key_of(token.text) for token in tokens]
    empty = [at for at in range(len(tokens)) if taken.get(at) == (1, _NOTHING) and not _is_asked(keys, at)]
    left_out = dict.fromkeys(_left_out(tokens, empty, traits))
    uncounted = dict.fromkeys(_uncounted(tokens, empty, task, fields))
    parts = (("left out", left_out), ("without a number", uncounted), ("not answered", unanswered))
    return "; ".join(f"{name}: {', '.join(some)}" for name, some in parts if some)


def _left_out(tokens: Sequence[Token], empty: Sequence[int], traits: set[str]) -> Iterator[str]:
    """Yield circumstances, numbers in words, and what a word rules out that no plan has."""
    words = vocabulary()
    for at in empty:
        text, key = tokens[at].text, key_of(tokens[at].text)
        before = key_of(tokens[at - 1].text) if at and at - 1 in empty else ""
        if before in words.negations - {_NOT} and key in words.fillers - words.prose:
            yield f"{tokens[at - 1].text} {text}"
        elif (key in words.circumstances and key not in traits) or words.counts.get(key, _ONE) != _ONE:
            yield text


def _uncounted(tokens: Sequence[Token], empty: Sequence[int], task: str, fields: set[str]) -> Iterator[str]:
    """Yield loads and fields that the line names without a number, as in ``many users`` and ``will cp help``."""
    words = vocabulary()
    for at in empty:
        amount, key = words.amounts.get(key_of(tokens[at].text)), key_of(tokens[at].text)
        is_load = amount is not None and amount.field(task) in _LOADS and fields.isdisjoint(_LOADS)
        if is_load or (amount is None and key not in words.fillers and key in words.fields):
            yield tokens[at].text


def _is_asked(keys: Sequence[str], at: int) -> bool:
    """Whether a word that asks stands before another one, as in ``how many users``."""
    before = keys[max(at - _FARTHEST, 0) : at]
    pairs = map("".join, pairwise(before))
    return any(key in vocabulary().queries for key in (*before, *pairs))
