"""The lines of a configuration, choices, and what a typed line says, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from capacity_tui.engine.keys import Key
from capacity_tui.engine.record import dataclass

AUTO = "auto"
# Fields that the screen treats as what they are.
MODEL_KEY = Key.MODEL_NAME
HARDWARE_KEY = Key.HARDWARE_NAME
DEVICES_KEY = Key.HARDWARE_DEVICES
PINS_KEY = "scenarios"


class Kind(StrEnum):
    """How the value of a field is stepped and typed."""

    INTEGER = "integer"
    POWER_OF_TWO = "power-of-two"
    ROUND = "one-two-five"
    NUMBER = "number"
    CHOICE = "choice"
    TEXT = "text"
    PATH = "path"


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the configuration.

    Attributes:
        key: dotted path in the plan, such as ``training.micro_batch``.
        label: what the line is called.
        group: heading under which it stands.
        text: its value as shown, without the unit.
        value: its value as a number, where it has one; None while it is automatic.
        unit: unit shown behind the value.
        kind: how it is stepped and typed.
        minimum: smallest value allowed, if bounded.
        maximum: largest value allowed, if bounded.
        step: the difference of one step of an integer or number.
        choices: the values allowed, of a choice.
        catalogue: name of the catalogue to pick from, or empty.
        can_be_auto: whether the three modes may choose the value.
        is_auto: whether they do.
        help: what the field means and why it matters.
        idle: why it changes nothing in this plan; empty where it may.
        words: a few words for each choice that has any.
        synonyms: other words under which people look for it.
    """

    key: str
    label: str
    group: str
    text: str
    value: float | None = None
    unit: str = ""
    kind: Kind = Kind.TEXT
    minimum: float | None = None
    maximum: float | None = None
    step: float = 1
    choices: tuple[str, ...] = ()
    catalogue: str = ""
    can_be_auto: bool = False
    is_auto: bool = False
    help: str = ""
    idle: str = ""
    words: Mapping[str, str] = field(default_factory=dict, hash=False)
    synonyms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of a picker."""

    id: str
    title: str
    detail: str = ""
    group: str = ""
    price: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the word under the cursor of a line may become.

    Attributes:
        word: the whole word.
        kind: what it is, as ``model``.
        line: the line with it.
        cursor: where the cursor stands then.
    """

    word: str
    kind: str
    line: str
    cursor: int


@dataclass(frozen=True, slots=True)
class Understood:
    """What one line was taken for.

    Attributes:
        words: the same in a few words; empty where nothing was understood.
        guesses: what was guessed, and why.
        faults: what was not understood, and what to do.
        suggestions: what the word under the cursor may become.
    """

    words: str
    guesses: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
