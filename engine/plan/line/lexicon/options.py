"""Settings that are written as one word: options of programs, and several settings without spaces."""

from __future__ import annotations

import re

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary

_OF_DEVICE = re.compile(r"([a-z=]*\d+)/(gpu|device|card)", re.IGNORECASE)  # bs=2/gpu
_BETWEEN = re.compile(r"(?<=\d)[-/x×*+_|&,]?(?=[a-z])", re.IGNORECASE)
_SETTING = re.compile(r"([a-z_]+)[=:]?(\d+)", re.IGNORECASE)


def words_in(word: str) -> list[str]:
    """Return the words that one word is made of: ``tp8/pp16``, ``optim=adamw``, ``bf16=true``; none for others."""
    of_one = _OF_DEVICE.fullmatch(word)
    return [of_one[1], "per", of_one[2]] if of_one is not None else _of_option(word) or _of_settings(word)


def _of_option(word: str) -> list[str]:
    """Return the words of an option whose value says it all, or that switches a value."""
    key, mark, value = word.lstrip("-").partition("=")
    words, name = vocabulary(), key_of(key)
    is_switched = key_of(value) in words.switched_on | words.switched_off
    if is_switched and (name in words.switches or any(name in phrases for phrases in words.phrases.values())):
        return [words.short_options.get(key, key), *([] if key_of(value) in words.switched_on else [value])]
    is_option = name in words.known_by_value and (value[:1].isalpha() if mark else word.startswith("-"))
    return [key, *([value] if mark else [])] if is_option and not is_switched else []


def _of_settings(word: str) -> list[str]:
    """Return names and numbers of several settings without spaces, as ``tp8xpp16`` and ``r64/alpha128``."""
    matches = [_SETTING.fullmatch(part) for part in _BETWEEN.split(word)]
    pairs, words = [match.groups() for match in matches if match is not None], vocabulary()
    is_known = all(key_of(name) in words.amounts or key_of(name) in words.fields for name, _ in pairs)
    is_several = len(pairs) == len(matches) > 1 and any(len(name) > 1 for name, _ in pairs)
    return [part for pair in pairs for part in pair] if is_several and is_known else []
