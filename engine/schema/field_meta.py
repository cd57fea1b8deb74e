"""What the screen and the messages know about a plan field: label, unit, range, step, choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["integer", "power-of-two", "number", "choice", "switch", "text", "list", "table"]


@dataclass(frozen=True, slots=True)
class Knob:
    """How one plan field is shown and stepped.

    Attributes:
        label: the words beside the value.
        kind: how ``+`` and ``-`` move it: by ``step``, by a factor of two, or through ``choices``.
        group: heading below which the field stands.
        unit: unit of the value, empty for a pure count.
        minimum: smallest value allowed.
        maximum: largest value allowed; stepping stops there.
        step: one step of an ``integer`` or ``number``.
        choices: the values of a ``choice``; also what an error message offers.
        automatic: whether ``auto`` lets each mode choose the value.
        families: kinds of model the field applies to; empty means all.
        tasks: tasks the field applies to; empty means all.
        is_length: whether ``k`` in a typed value stands for 1024, as in the names of context lengths.
        help: what the field is; fields of plans have theirs in ``profiles/fields.yaml``.
    """

    label: str
    kind: Kind
    group: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    step: float = 1
    choices: tuple[str, ...] = ()
    automatic: bool = False
    families: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    is_length: bool = False
    help: str = ""
