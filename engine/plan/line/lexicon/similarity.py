"""The names that a word of a line is most similar to, and what to say of one that means nothing here."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from capacity_tui.engine.catalog import Catalog, close_matches, format_in_name, key_of, nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.line.lexicon.hardware_words import hardware_names, named_hardware
from capacity_tui.engine.plan.line.lexicon.model_words import (
    LIKE_IT,
    families_of_models,
    is_misspelt,
    is_size,
    model_names,
    named_model,
    resembling_model,
)
from capacity_tui.engine.plan.line.lexicon.setting_words import named_value
from capacity_tui.engine.plan.line.lexicon.tokens import Token
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, Meaning
from capacity_tui.engine.printable import printable
from capacity_tui.engine.units import parse_quantity

ONE_OF = "a plan has one of them"
_FEWEST_JOINED = 2
TASK_NAME, MODEL_NAME, HARDWARE_NAME = Key.TASK, "model", "hardware"

_SIMILAR, _FEWEST_LETTERS, _LONGEST = 0.74, 4, 60
_LONG, _SLIP = 8, 0.88
"""Letters of a word that a slip is known of, and how similar it is to be: ``clasification``."""

_FEWEST_OF_AN_AMOUNT, _SLIP_OF_AN_AMOUNT = 5, 0.85
"""Letters of a word that may be a slip of one beside a number, and how similar it is to be."""

_DIGIT = re.compile(r"\d+")
_INFLECTIONS = ("s", "es", "ed", "d", "ing", "ly", "er", "'s")


@lru_cache(maxsize=4096)
def similar_names(word: str, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return kind and name of what a word may be a slip for, the most similar first.

    Models and hardware are so for words with letters enough to tell, and with the very digits of the name: another
    digit is another model.
    """
    names, similar = _known_names(catalog), list[tuple[str, str]]()
    plain = key_of(catalog.architectures.plain_name(word))[:60]
    is_telling = sum(map(str.isalpha, word)) >= _FEWEST_LETTERS
    for key in close_matches(plain, names, 3, _SIMILAR):
        kind, name = names[key]
        is_same = is_misspelt(_without_variant(word, catalog), name)
        is_slip = is_misspelt(plain, key) and (len(plain) > _FEWEST_LETTERS or len(key) > len(plain))
        is_slip |= key[:1] == plain[:1] and sorted(plain) == sorted(key)
        if (kind == TASK_NAME and is_slip) or (kind != TASK_NAME and is_telling and is_same):
            similar.append((kind, name))
    return tuple(similar)


@lru_cache(maxsize=4096)
def joined_names(word: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the names that slashes join, all of sizes, models, formats, methods or devices, as ``t4/l4``.

    Empty for other words.
    """
    parts, words = re.sub(r"^\d+[x×*]", "", word).split("/"), vocabulary()  # 8*a100/h100
    if len(parts) < _FEWEST_JOINED or not all(parts):
        return ()
    sized = [parts[0], *(f"{parts[0][:-1]}{part}" for part in parts[1:])]
    if all(len(part) == 1 and part.isalpha() for part in parts[1:]):  # vit-s/b/l, yolov8n/s
        known = (named_model(name, catalog) or resembling_model(name, catalog) for name in sized[:_FEWEST_JOINED])
        return tuple(sized) if all(known) else ()
    are_sizes = all(is_size(part) and "x" not in part for part in parts)
    sizes = [parse_quantity(part, "") for part in parts] if are_sizes else []
    kinds = (
        are_sizes and sizes == sorted(sizes),  # 235b/22b is a mixture
        is_size(parts[0]) and parts[-1].casefold() in families_of_models(catalog),  # llama 8b/qwen 7b
        all(_is_sized_model(part, catalog) for part in parts),
        all(format_in_name(part) is not None or key_of(part) in words.formats for part in parts),
        all(key_of(part) in words.methods for part in parts),
        all(named_hardware(part, catalog) is not None for part in parts),
    )
    return tuple(parts) if any(kinds) else ()


def _is_sized_model(name: str, catalog: Catalog) -> bool:
    """Whether a name is that of a model with its size, as ``llama-8b``, rather than of who published one."""
    is_sized = any(map(is_size, re.split("[-_]", name))) and not is_size(name)
    return is_sized and (named_model(name, catalog) or resembling_model(name, catalog)) is not None


def _without_variant(word: str, catalog: Catalog) -> str:
    """Return a name without the words that name a variant, slips of the longer ones among them: ``8b-instrct``."""
    table = catalog.architectures
    long = [variant for variant in table.variants if len(variant) >= _LONG]
    parts = table.plain_name(word).split("-")
    return "-".join(part for part in parts if not any(is_misspelt(part, variant) for variant in long))


@lru_cache(maxsize=4096)
def amount_meant(word: str) -> str | None:
    """Return the word beside a number that a word is a slip of, as ``exmaples``; None for other words."""
    key, words = key_of(word), vocabulary()
    groups = (words.fillers, words.tasks, words.sent, words.together, *words.phrases.values())
    is_other = any(key in group for group in groups)
    if is_other or not key.isalpha() or len(key) < _FEWEST_OF_AN_AMOUNT:
        return None
    counting = (word for word, amount in words.amounts.items() if not amount.fields or any(amount.fields.values()))
    names = [*counting]
    swapped = next((word for word in _swapped(key) if word in names), None)  # epohcs
    return swapped or next(iter(close_matches(key, names, 1, _SLIP_OF_AN_AMOUNT)), None)


@lru_cache(maxsize=4096)
def data_meant(word: str) -> str | None:
    """Return the data set that a word is a slip of, as ``imagnet``, with the very digits; None for others."""
    key = key_of(word)
    known = (*vocabulary().datasets, *vocabulary().sounds)
    names = [name for name in known if _DIGIT.findall(name) == _DIGIT.findall(key)]
    return next(iter(close_matches(key, names, 1, _SLIP)), None) if len(key) >= _FEWEST_OF_AN_AMOUNT else None


def is_near_filler(word: str) -> bool:
    """Return whether a word is a form of one that says nothing, as ``sizing``, or a slip of a long one."""
    key = key_of(word)
    is_form = not _stems(key).isdisjoint(_stems_of_fillers())
    return is_form or _has_swapped(key) or bool(close_matches(key, _long_fillers().get(key[:2], ()), 1, _SLIP))


def _has_swapped(key: str) -> bool:
    """Return whether two letters of a word that says nothing changed places behind its first, as in ``mcuh``."""
    fillers = vocabulary().fillers if len(key) >= _FEWEST_LETTERS and key.isalpha() else frozenset[str]()
    return any(word in fillers for word in _swapped(key))


def _swapped(key: str) -> Iterator[str]:
    """Yield a word with each two letters in each other's place behind its first."""
    swapped = (f"{key[:at]}{key[at + 1]}{key[at]}{key[at + 2 :]}" for at in range(1, len(key) - 1))
    return (word for word in swapped if word != key)


def is_common(word: str) -> bool:
    """Return whether a word is one of plain language that might be a name, or a form of one."""
    key = key_of(word)
    return not vocabulary().common.isdisjoint({key, *_stems(key)})


def is_plain(word: str) -> bool:
    """Return whether a word is of plain language."""
    return is_near_filler(word) or is_common(word)


def _stems(key: str) -> frozenset[str]:
    """Return what a word may be a form of, as ``pack`` and ``packe`` of ``packed``."""
    stems = {key.removesuffix(ending) for ending in _INFLECTIONS if key.endswith(ending)}
    return frozenset(form for stem in stems if len(stem) >= _FEWEST_LETTERS - 1 for form in (stem, f"{stem}e"))


@cache
def _stems_of_fillers() -> frozenset[str]:
    fillers = vocabulary().fillers
    forms = frozenset().union(*map(_stems, fillers))
    return fillers | {stem for stem in forms if len(stem) > _FEWEST_LETTERS - 1}


@cache
def _long_fillers() -> Mapping[str, tuple[str, ...]]:
    """Return words that say nothing and are long enough to know a slip of them, by their first two letters."""
    long = [word for word in vocabulary().fillers if len(word) >= _LONG]
    return {begin: tuple(word for word in long if word[:2] == begin) for begin in {word[:2] for word in long}}


def unknown_words(words: Mapping[str, str], catalog: Catalog) -> PlanError:
    """Return what to say of words that mean nothing here: the names nearest to each, and where to look.

    Args:
        words: the name in each word, without a number of devices, by the word.
        catalog: what names stand for.
    """
    hints = []
    for text, name in words.items():
        near = _nearest_names(catalog.architectures.plain_name(name), catalog)
        to = f" to {_quoted(text)}" if len(words) > 1 else ""
        hints += [f"nearest{to}: {', '.join(near)}"] if near else []
    shown = [_quoted(text) for text in words]
    are = "is not a model, device or option" if len(shown) == 1 else "are not models, devices or options"
    names = f"{', '.join(shown[:-1])} and {shown[-1]}" if shown[1:] else shown[0]
    example = shlex.quote(printable(next(iter(words))[:_LONGEST]))
    hints.append(
        f"see `capacity-tui models --filter {example}` or `capacity-tui hardware`, write key=value, or leave it out"
    )
    return PlanError(f"{names} {are} known here", hint="; ".join(hints))


@lru_cache(maxsize=4096)
def _nearest_names(name: str, catalog: Catalog) -> tuple[str, ...]:
    return nearest(name, [known for _, known in _known_names(catalog).values()])


@lru_cache(maxsize=4096)
def is_like_name(word: str, catalog: Catalog) -> bool:
    """Return whether a word is near a name, or may be a slip of a setting, as ``fsdpp``."""
    words, key = vocabulary(), key_of(word)
    known = (_known_names(catalog), words.fields, words.amounts, words.formats, *words.phrases.values())
    return any(close_matches(key, names, 1, _SIMILAR) for names in known)


def _quoted(text: str) -> str:
    return repr(printable(text[:_LONGEST]))


@lru_cache(maxsize=4)
def _known_names(catalog: Catalog) -> Mapping[str, tuple[str, str]]:
    """Return kind and name of all that a word may be a slip of, by key."""
    words = vocabulary()
    names: dict[str, tuple[str, str]] = {}
    for kind, known in (
        (TASK_NAME, (*words.methods, *words.tasks)),
        (MODEL_NAME, model_names(catalog)),
        (HARDWARE_NAME, hardware_names(catalog)),
    ):
        for name in known:
            names.setdefault(key_of(name), (kind, name))
    return names


def same_format(key: str, task: str, tokens: Sequence[Token], catalog: Catalog) -> Meaning | None:
    """Recognize bits of weights whose format another word of a line tells, as in ``gptq 4bit``."""
    known, bits = vocabulary(), _DIGIT.findall(key)
    words = [token.text for token in tokens]
    keys = [key_of(word) for word in words]
    if task != INFER or key not in known.formats or not bits:
        return None
    if not (known.comparing | known.given_up).isdisjoint((*keys, *map("".join, pairwise(keys)))):
        return None  # int8 rather than fp8
    others = [word for word in words if key_of(word) not in known.formats]
    formats = (named_value(word, INFER, "", catalog) for word in others)
    values = [
        *(meaning.values for meaning in formats if meaning),
        *(known.phrase(word, INFER) or {} for word in others),
    ]
    names = (str(value.get(Key.INFERENCE_WEIGHTS, "")) for value in values)
    return Meaning() if any(bits[0] in _DIGIT.findall(name) for name in names) else None


def nearest_mixture(total: float, active: float, size: str, catalog: Catalog) -> tuple[str, float]:
    """Return the mixture of experts that is the most like some sizes, and by which share it differs.

    Args:
        total: its parameters.
        active: those that one token uses.
        size: how the line calls it, as ``30b``.
        catalog: facts.
    """
    rows = (row for row in catalog.architectures.values() if row.experts and row.params_total and row.params_active)
    unlike = {
        row.id: max(abs((row.params_total or 0) / total - 1), abs((row.params_active or 0) / active - 1))
        for row in rows
    }
    nearest = min(
        unlike,
        key=lambda name: (unlike[name] > LIKE_IT, size.casefold() not in name.split("-"), unlike[name]),
        default="",
    )
    return nearest, unlike.get(nearest, math.inf)
