"""The words of a line with their numbers as digits, and each number before what it counts."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import Catalog, key_of
from capacity_tui.engine.plan.line import hardware_words as hardware
from capacity_tui.engine.plan.line.setting_words import amount_of
from capacity_tui.engine.plan.line.tokens import Token, split
from capacity_tui.engine.plan.line.vocabulary import vocabulary

_TIMES = re.compile(r"[x×](\d{1,3})", re.IGNORECASE)  # x2 3090
_OF = frozenset({"of", "x", "×"})
"""Words between a number in words and what it counts, as in ``a pair of 3090s``."""


def counted_tokens(text: str, catalog: Catalog) -> list[Token]:
    """Return the words of a line, its numbers as digits before hardware and before what they count."""
    return _with_digits(_with_names_first(split(text), catalog), catalog)


def _with_names_first(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with hardware before a memory that stands between it and its number, as in ``2 24gb 3090s``."""
    for index in range(1, len(tokens) - 1):
        before, figure = tokens[index - 1].text, tokens[index]
        is_counted = before.isdigit() or key_of(before) in {*vocabulary().counts, "x"}
        if not is_counted or hardware.MEMORY not in (hardware.figures_of(figure.text) or {}):
            continue
        for end in range(min(index + 4, len(tokens)), index + 1, -1):
            name = tokens[index + 1 : end]
            if hardware.named_hardware(" ".join(token.text for token in name), catalog) is not None:
                return [*tokens[:index], *name, figure, *_with_names_first(tokens[end:], catalog)]
    return tokens


def _with_digits(tokens: list[Token], catalog: Catalog) -> list[Token]:
    """Return the words with numbers in words as digits, before hardware and before what they count."""
    counts = vocabulary().counts
    made: list[Token] = []
    skipped = -1
    for index, token in enumerate(tokens):
        if index == skipped:
            continue
        times = _TIMES.fullmatch(token.text)
        count = int(times[1]) if times else counts.get(key_of(token.text))
        at = index + 1 + int(index + 1 < len(tokens) and key_of(tokens[index + 1].text) in _OF)
        after = [later.text for later in tokens[at : at + 2]]
        if count is None or not after:
            made.append(token)
            continue
        amount = amount_of(after[0])
        is_hardware = any(hardware.named_hardware(" ".join(after[:words]), catalog) for words in (1, 2))
        is_hardware |= key_of(after[0]) in vocabulary().nodes
        if not is_hardware and (amount is None or not amount.is_behind):
            made.append(token)
            continue
        skipped = at - 1 if at > index + 1 else -1
        if is_hardware and amount is None:
            made.append(Token(f"{count}x", token.start, token.end))
        else:
            made.append(Token(str(count), token.start, token.end))
    return made
