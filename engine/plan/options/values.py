"""What an option of another tool means in a plan: by its value, or by its name alone where tools agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import field
from functools import cache

from capacity_tui.engine.catalog import Plain, key_of, nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.options.meanings import MEANINGS
from capacity_tui.engine.plan.options.tools import Option, Tool, UnmodelledError, UnreadError, tools, word_of
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
    """Return what an option sets by a value at a place; raises PlanError where it is not allowed."""
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


_SERVED = "infer"
_SHAPE = "shape."  # Parts of a model, which a plan takes from its configuration


@dataclass(frozen=True, slots=True)
class Agreed:
    """What tools say of an option that they know."""

    values: Mapping[str, object]  # by field, or by quantity that fields follow from
    remarks: tuple[str, ...] = ()  # what of it plans have no word for
    tools: tuple[str, ...] = ()  # those that say so
    others: tuple[str, ...] = ()  # those that say something else
    is_counted: bool = True  # whether any of them counts it for memory or time


def is_option(written: str) -> bool:
    """Whether any tool has an option of a name."""
    return bool(_owners(written))


def takes(written: str, word: Plain) -> bool:
    """Whether a word may be the value of an option: one that is on or off takes no other."""
    return any(_takes(owner, name, word) for owner, name in _owners(written))


def _takes(owner: Tool, name: str, word: Plain) -> bool:
    option = owner.options.get(name)
    if option is None:
        return isinstance(word, bool | int | float)  # of no effect whatever it is
    words = {*map(word_of, (*option.values, *option.unmodelled))}
    try:
        return word_of(word) in words or not (words or not values_of(option, word, Place(field=name)).values)
    except PlanError:
        return False


def agreed(written: str, value: Plain, *, serves: bool, read: Mapping[str, str], named: Set[str]) -> Agreed | None:
    """Return what an option of no file means; None where no tool of the task has it.

    Args:
        written: its name, dashes included; of one in a section its last part may do.
        value: what it is given.
        serves: whether models answer, rather than being trained.
        read: what quantities are called that may be taken for values, beside fields of a plan.
        named: keys of words that may name the tool, which alone counts then if it counts the option.

    Raises:
        PlanError: a value that it cannot have.
    """
    owners = [(owner, name) for owner, name in _owners(written) if (owner.sets.get(Key.TASK) == _SERVED) == serves]
    counted: list[tuple[Tool, Mapping[str, object]]] = []
    remarks: dict[str, None] = {}
    is_counted = False
    for owner, name in owners:
        option = owner.options.get(name)
        if option is not None and not option.tool:
            option_values = values_of(option, value, Place(field=written))
            remarks |= dict.fromkeys(option_values.remarks)
            is_counted |= bool(option_values.values)
            items = option_values.values.items()
            kept = {read.get(path, path): _first(one) for path, one in items if _is_read(path, read)}
            counted += [(owner, kept)] if kept else []
        elif name in owner.unmodelled and value is not False:
            remarks[owner.unmodelled[name]] = None
    if not owners:
        return None
    own = [(one, kept) for one, kept in counted if not named.isdisjoint(map(key_of, (one.id, one.short_name)))]
    first = (own or counted)[0][1] if counted else {}
    # Some say more than others, as that an adapter is trained: what all of them say counts.
    values = {path: one for path, one in first.items() if all(path in kept for _, kept in own or counted)}
    alike = dict.fromkeys(one.short_name for one, kept in own or counted if values and values.items() <= kept.items())
    others = dict.fromkeys(one.short_name for one, _ in own or counted if one.short_name not in alike)
    return Agreed(values, tuple(remarks), tuple(alike), tuple(others), is_counted)


def _first(value: object) -> object:
    return value[0] if isinstance(value, list) else value


def _is_read(path: str, read: Mapping[str, str]) -> bool:
    return ("." in path and not path.startswith(_SHAPE)) or path in read


@cache
def _owners(written: str) -> tuple[tuple[Tool, str], ...]:
    return tuple((owner, name) for owner in tools().values() for name in _names(owner, written))


def _names(owner: Tool, written: str) -> Iterator[str]:
    """Yield the names by which a tool knows an option: its own, or else those that end in it and say something."""
    name = owner.named(written)
    if name in owner.known:
        yield name
    else:
        names = (*owner.options, *owner.other_names)
        yield from dict.fromkeys(owner.named(known) for known in sorted(names) if known.endswith(f".{name}"))
