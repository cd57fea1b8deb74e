"""The types plan fields are made of: counts, amounts, frozen sections."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from capacity_tui.engine.units import parse_count, parse_length, parse_quantity

AUTO: Literal["auto"] = "auto"
TRANSFORMER = ("transformer",)
NETWORK = ("network",)
NEURAL = ("transformer", "network")
TRAINED = ("train", "finetune")

# Bounds that keep every product below inside double precision; far beyond anything built.
LARGEST_COUNT = 10**7
LARGEST_TOKENS = 1e18
LARGEST_DURATION = 1e7
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


Count: TypeAlias = Annotated[int, BeforeValidator(_count), Field(ge=1, le=LARGEST_COUNT)]
Amount: TypeAlias = Annotated[float, BeforeValidator(_amount), Field(gt=0, le=LARGEST_TOKENS, allow_inf_nan=False)]
AutoCount: TypeAlias = Annotated[Count | Literal["auto"], BeforeValidator(_count)]
WholeNumber: TypeAlias = Annotated[int, BeforeValidator(_count), Field(ge=0, le=LARGEST_WHOLE)]
"""A count that may be none at all."""
AutoWholeNumber: TypeAlias = Annotated[WholeNumber | Literal["auto"], BeforeValidator(_count)]
AutoAmount: TypeAlias = Annotated[Amount | Literal["auto"], BeforeValidator(_amount)]
Length: TypeAlias = Annotated[int, BeforeValidator(_length), Field(ge=1, le=LARGEST_COUNT)]
"""Tokens of one sequence, where ``4k`` is 4096 as in the names of models; counts of tokens are decimal."""
AutoLength: TypeAlias = Annotated[Length | Literal["auto"], BeforeValidator(_length)]
AutoShare: TypeAlias = Annotated[Annotated[float, Field(gt=0, le=1)] | Literal["auto"], BeforeValidator(_share)]
Duration: TypeAlias = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=LARGEST_DURATION)]
"""Seconds; ``10min`` and ``1 h`` are read too."""
AutoDuration: TypeAlias = Annotated[Duration | Literal["auto"], BeforeValidator(_duration)]
SpecValue: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None


class Section(BaseModel):
    """A frozen part of a plan; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
