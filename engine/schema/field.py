"""A field of a plan: the types of its values, and what is known besides: label, range, step, role, what follows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_seconds, parse_count, parse_length, parse_quantity

AUTO: Literal["auto"] = "auto"
NETWORK = ("network",)
TRAINED = ("train", "finetune")

# Bounds that keep every product below inside double precision; far beyond anything built.
LARGEST_COUNT = 10**7
LARGEST_LENGTH = 2**24
LARGEST_TOKENS = 1e18
LARGEST_DURATION, LARGEST_DEADLINE = 1e7, 1e10
LARGEST_WHOLE = 10**9


def _count(value: object) -> object:
    """Accept ``8k`` or ``2.0B`` for a count; leave everything else to the validator."""
    if isinstance(value, bool):
        raise ValueError("allowed: a number")
    return parse_count(value) if isinstance(value, str) and value != AUTO else value


def _length(value: object) -> object:
    """Accept ``4k`` (4096) for a length; leave everything else to the validator."""
    return parse_length(value) if isinstance(value, str) and value != AUTO else _count(value)


def _amount(value: object) -> object:
    """Accept ``0.5`` and ``2.0B`` for an amount; leave everything else to the validator."""
    try:
        return float(value) if isinstance(value, str) else _count(value)
    except ValueError:
        return _count(value)


def _share(value: object) -> object:
    """Accept ``85%`` for a share; leave everything else to the validator."""
    return parse_quantity(value, "share") if isinstance(value, str) and value != AUTO else value


def _duration(value: object) -> object:
    """Accept ``10min`` for seconds; leave everything else to the validator."""
    return parse_quantity(value, "s") if isinstance(value, str) and value != AUTO else value


def duration_text(seconds: float) -> str:
    """Return seconds as one writes them, without loss: ``30d``, ``1h30min``, ``4001.5s``."""
    text = format_seconds(seconds).replace(" ", "")
    return text if parse_quantity(text, "s") == seconds else f"{seconds:.12g}s"


Count: TypeAlias = Annotated[int, BeforeValidator(_count), Field(ge=1, le=LARGEST_COUNT)]
Amount: TypeAlias = Annotated[float, BeforeValidator(_amount), Field(gt=0, le=LARGEST_TOKENS, allow_inf_nan=False)]
AutoCount: TypeAlias = Annotated[Count | Literal["auto"], BeforeValidator(_count)]
WholeNumber: TypeAlias = Annotated[int, BeforeValidator(_count), Field(ge=0, le=LARGEST_WHOLE)]
"""A count that may be none at all."""
AutoWholeNumber: TypeAlias = Annotated[WholeNumber | Literal["auto"], BeforeValidator(_count)]
AutoAmount: TypeAlias = Annotated[Amount | Literal["auto"], BeforeValidator(_amount)]
Length: TypeAlias = Annotated[int, BeforeValidator(_length), Field(ge=1, le=LARGEST_LENGTH)]
"""Tokens of one sequence, where ``4k`` is 4096 as in the names of models; counts of tokens are decimal."""
AutoLength: TypeAlias = Annotated[Length | Literal["auto"], BeforeValidator(_length)]
AutoShare: TypeAlias = Annotated[Annotated[float, Field(gt=0, le=1)] | Literal["auto"], BeforeValidator(_share)]
Duration: TypeAlias = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=LARGEST_DURATION)]
"""Seconds; ``10min`` and ``1 h`` are read too."""
Deadline: TypeAlias = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=LARGEST_DEADLINE)]
"""Seconds of a whole job, which may be years; read as a duration is."""
AutoDuration: TypeAlias = Annotated[Duration | Literal["auto"], BeforeValidator(_duration)]
SpecValue: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None


class Section(BaseModel):
    """A frozen part of a plan; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)


Kind = Literal["integer", "power-of-two", "number", "choice", "switch", "text", "list", "table"]
Role = Literal["job", "surroundings", "setting", "memory", "derived", "running", "output"]
"""What a field is for.

job: what is wanted; the same whatever way it is run.
surroundings: which software, network and prices there are.
setting: how it is run; a lever.
memory: likewise, but slower or another result: a lever where memory is short alone.
derived: a size that follows from others.
running: how a run is supervised; no estimate depends on it.
output: what is analysed and reported beside the estimate.
"""
Rule = Literal[
    "replaced", "counted", "adapter", "method", "given back", "open", "refilled", "divided", "single", "scaled", "model"
]
"""How one field follows another: the functions of these names are in ``engine/plan/consequences.py``."""


@dataclass(frozen=True, slots=True)
class Follows:
    """What a change of a field does to another one."""

    path: str  # the field, or the section, that follows
    rule: Rule
    why: str


@dataclass(frozen=True, slots=True)
class Knob:
    """How one plan field is shown, stepped and chosen."""

    label: str
    kind: Kind  # how ``+`` and ``-`` move it: by ``step``, by a factor of two, or through ``choices``
    group: str
    unit: str = ""  # unit of the value, empty for a pure count
    minimum: float | None = None
    maximum: float | None = None  # largest value allowed; stepping stops there
    step: float = 1  # one step of an ``integer`` or ``number``
    choices: tuple[str, ...] = ()  # the values of a ``choice``; also what an error message offers
    automatic: bool = False  # whether ``auto`` lets each mode choose the value
    families: tuple[str, ...] = ()  # kinds of model the field applies to; empty means all
    tasks: tuple[str, ...] = ()  # tasks the field applies to; empty means all
    is_length: bool = False  # whether ``k`` in a typed value stands for 1024, as in the names of context lengths
    help: str = ""  # what the field is; fields of plans have theirs in ``profiles/fields.yaml``
    role: Role | None = None  # what the field is for; every field of a plan has one
    follows: tuple[Follows, ...] = ()  # what a change of it does to other fields
    needs: tuple[str, ...] = ()  # conditions of ``profiles/fields.yaml`` without which it changes nothing
    is_wish: bool = False  # whether setting it without effect is worth a warning
    # whether model and answers are the same regardless of its value, which costs time or memory alone
    keeps_result: bool = False
    resolved_from_others: bool = False  # whether its default follows from other fields
    chosen_for: tuple[str, ...] = ()  # tasks in which the modes choose the value also where the plan gives none
    # whether the modes choose it once everything else is settled, from what the run then needs
    chosen_last: bool = False
    placeholder: object = None  # what it holds while its value is still being chosen; None for its default
    broadcasts: bool = False  # whether one estimate takes many values of it as an array
    catalogue: str = ""  # catalogue that a value is picked from; empty for none
    rows: str = ""  # kind of the catalogue rows that it names, whose names are its choices; empty for none
    is_main: bool = False  # whether it is among the few that are shown first, since they move figures most
    shown: bool = True


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One form of a report."""

    suffixes: tuple[str, ...]  # names of files that ask for it
    is_drawn: bool = False  # whether it is drawn for the terminal there is
    is_page: bool = False  # whether it is one page for one plan


REPORT_FORMATS: Mapping[str, ReportFormat] = MappingProxyType(
    {
        "table": ReportFormat((".txt",), is_drawn=True),
        "markdown": ReportFormat((".md",)),
        "json": ReportFormat((".json",)),
        "html": ReportFormat((".html", ".htm"), is_page=True),
        "yaml": ReportFormat((".yaml", ".yml")),
    }
)


def format_of_suffix(suffix: str) -> str | None:
    """Return the form that the suffix of a file asks for; None where it asks for none."""
    return next((name for name, form in REPORT_FORMATS.items() if suffix.lower() in form.suffixes), None)


def known_format(name: object) -> object:
    """Return the name of a form as it is; raises ValueError where there is no such form."""
    if not isinstance(name, str) or name not in REPORT_FORMATS:
        raise ValueError(f"allowed: {', '.join(REPORT_FORMATS)}")
    return name
