"""What a value of an option stands for in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from capacity_tui.engine.catalog import Plain, nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.plan.options.meanings import MEANINGS
from capacity_tui.engine.plan.options.tools import Option, UnmodelledError, UnreadError, word_of
from capacity_tui.engine.record import dataclass

OPEN = frozenset({"auto", "null", "none", ""})
"""Words of an option that is left to the tool."""
ANY = "any"  # Stands among the words of an option for whatever is given
_LONGEST = 60
_SWITCHES = {"1": "true", "yes": "true", "on": "true", "0": "false", "no": "false", "off": "false"}


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    text = word_of(value) if isinstance(value, bool | None) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


@dataclass(slots=True)
class OptionValues:
    """What an option sets by a value."""

    values: Mapping[str, object] = field(default_factory=dict)  # by field, or by quantity that fields follow from
    remarks: list[str] = field(default_factory=list)  # what of it plans have no word for
    is_known: bool = True  # whether the option has the value


def values_of(option: Option, value: Plain, place: Place) -> OptionValues:
    """Return what an option sets by a value.

    Args:
        place: where it stands.

    Raises:
        PlanError: not allowed for the option.
    """
    read = OptionValues()
    meaning = _meaning(option, value, place, read)
    if isinstance(meaning, dict):
        read.values = meaning
    elif meaning is not None:
        read.values = {option.path: meaning}
    return read


def _meaning(option: Option, value: Plain, place: Place, read: OptionValues) -> object:
    """Return what a value stands for: a value, values by field, or None for nothing."""
    if option.values or option.unmodelled.keys() - {ANY}:
        if option.meaning == "words":
            words = value if isinstance(value, list) else [value]
            return tuple(_word(option, word, read) for word in words)
        return _word(option, value, read)
    try:
        return MEANINGS[option.meaning or "number"](value)
    except UnmodelledError as error:
        read.remarks.append(str(error))
        return error.counted
    except UnreadError as error:
        words = value if isinstance(value, list) else [value]
        written = " ".join(map(str, words)) if words and all(isinstance(word, str) for word in words) else value
        raise PlanError("not allowed", repr(written)[:_LONGEST], f"allowed: {error}", place) from None


def _word(option: Option, value: Plain, read: OptionValues) -> object:
    word = word_of(value)
    words = {word_of(written): written for written in option.values}
    reasons = {word_of(written): why for written, why in option.unmodelled.items()}
    if word not in words and word not in reasons:
        word = _SWITCHES.get(word, word)
    if word in reasons:
        read.remarks.append(reasons[word])
    if word in words:
        return option.values[words[word]]
    if word not in OPEN and word not in reasons:
        close = nearest(word, words, 1)
        meant = f", did you mean {words[close[0]]}?" if close else ""
        read.remarks.append(f"{shown(value)} is not known{meant}: the tool's default counts")
        read.is_known = False
    return None
