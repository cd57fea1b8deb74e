"""A setting of a line that is compared with nothing: the plan with it and the plan without."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.field_table import OWN_PARAMETERS
from capacity_tui.engine.plan.line.lexicon.vocabulary import vocabulary
from capacity_tui.engine.plan.line.lexicon.words import INFER, OneLine

_MOST_WORDS, _ENDS = 5, ".,;:?!"  # Words that a setting may have, as in ``1b draft with 4 tokens``
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_COMMA = re.compile(r"\s*,\s*(?:(?:and|or) )?|\s+and\s+")
_JOINT = re.compile(r"\s*[,，、/]\s*(?:and )?| and |和|与")  # Between loads, as in 8, 16 and 32 concurrent
_SIZES_LISTED = re.compile(rf"\b\d[\d.]*b(?:(?:{_COMMA.pattern})\d[\d.]*b\b)+", re.IGNORECASE)
_FARTHEST = 12  # Words between a setting and what compares it
_UNLESS_GIVEN = "as usual"  # What the plan without a setting is called where nothing rules it out
_SAME = (Key.TASK, Key.MODEL_NAME, OWN_PARAMETERS, "hardware.")


def says_to_compare(text: str) -> bool:
    """Whether words of a line say that it compares what it names: of a post those of a question, or beside a joint."""
    words, sentences = vocabulary(), _SENTENCE.split(text)
    keys = [{key_of(word.rstrip(_ENDS)) for word in sentence.split()} for sentence in sentences]
    joined = [bool(of & (words.both | words.comparing)) or len(keys) == 1 for of in keys]
    asked = [sentence.endswith("?") for sentence in sentences]
    return any(of & words.compares and (one or two) for of, one, two in zip(keys, joined, asked, strict=True))


def choices(text: str) -> str:
    """Return a line with ``or`` for the commas between sizes and loads: ``7b, 13b, 70b``, ``8并发，16并发``."""
    sized = _SIZES_LISTED.sub(lambda sizes: _COMMA.sub(" or ", sizes[0]), text)
    return _loads_listed().sub(lambda loads: _JOINT.sub(" or ", loads[0]), sized)


@cache
def _loads_listed() -> re.Pattern[str]:
    amounts = vocabulary().amounts.items()
    loads = (word for word, amount in amounts if amount.field(INFER) == Key.INFERENCE_CONCURRENCY)
    nouns = "|".join(sorted(map(re.escape, loads), key=len, reverse=True))
    load = rf"\d{{1,4}} ?(?:{nouns})"
    return re.compile(rf"(?<![\w.-])(?:(?:{load}|\d{{1,4}})(?:{_JOINT.pattern}))+{load}", re.IGNORECASE)


def with_and_without(words: Sequence[str], mark: int, read: Callable[[str], OneLine]) -> tuple[tuple[str, str], ...]:
    """Return names and lines with and without a setting: ``eagle3 vs plain``, ``eagle3 vs no speculation``.

    It is the fewest words before the mark, the nearest to it, without which the line says less of the same.

    Args:
        words: of the line.
        mark: where the word stands that compares.
        read: reads a line.
    """
    keys, nothing = [key_of(word.rstrip(_ENDS)) for word in words], vocabulary().nothing
    if not keys[mark + 1 :] or keys[mark + 1] not in nothing or keys.count(keys[mark]) > 1:
        return ()
    after = next((at for at in range(mark + 1, len(words)) if keys[at] not in nothing), len(words))
    ruled_out = (words[after : after + few] for few in (2, 1) if keys[mark + 1] in vocabulary().negations)
    plain = (name for name in ruled_out if "".join(name).rstrip(_ENDS).isalpha() and not _subject(read(" ".join(name))))
    after += len(next(plain, ()))  # no prefix caching, but no speculation 2xh200
    head, tail = words[:mark], words[after:]
    if (first := read(" ".join((*head, *tail)))).faults:
        return ()
    for few in range(1, _MOST_WORDS + 1):
        for start in range(mark - few, max(mark - few - _FARTHEST, -1), -1):
            second, name = read(" ".join((*head[:start], *head[start + few :], *tail))), head[start : start + few]
            is_less = _subject(second) == _subject(first) and second.values.keys() < first.values.keys()
            if is_less and not second.faults:
                named = f"no {' '.join(name)}"
                other = read(f"{second.text}, {named}")
                is_other = not other.faults and _subject(other) == _subject(first) and other.values != first.values
                return (" ".join(name), first.text), (named, other.text if is_other else second.text)
    return ()


def needed_or_not(line: OneLine, setting: str, read: Callable[[str], OneLine]) -> tuple[tuple[str, str], ...]:
    """Return a line that asks whether a setting is needed with it and without: ruled out, or as it is unless given."""
    word = next(word for word in line.words if word.meaning.fault is not None and word.meaning.fault.detail == setting)
    rest = f"{line.text[: word.start]} {line.text[word.end :]}".strip(f" {_ENDS}").removeprefix("for ")
    instead = vocabulary().instead.get(key_of(setting), f"no {setting}")
    without = (_UNLESS_GIVEN, rest) if read(f"{rest}, {instead}").faults else (instead, f"{rest}, {instead}")
    return ((setting, f"{rest}, {setting}"), without) if rest else ()


def _subject(line: OneLine) -> dict[str, object]:
    """Return what a line says of task, model and hardware."""
    return {path: value for path, value in line.values.items() if path.startswith(_SAME) and path not in _guessed(line)}


def _guessed(line: OneLine) -> set[str]:
    return {entry.key for entry in line.assumed if entry.key == Key.TASK}
