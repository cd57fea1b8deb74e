"""Equations that can show their working: formula, the numbers put in, unit and source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import numpy as np

from capacity_tui.engine.numeric import Number

Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class Derivation:
    """One equation as it was evaluated.

    Attributes:
        name: the equation's name.
        part: result key it contributes to, empty for an inner step.
        formula: the formula as written.
        inputs: argument names with the numbers put in.
        result: what came out.
        unit: unit of the result.
        source: where the formula comes from.
    """

    name: str
    part: str
    formula: str
    inputs: tuple[tuple[str, object], ...]
    result: Number
    unit: str
    source: str


_record: ContextVar[list[Derivation] | None] = ContextVar("record", default=None)


def equation(
    formula: str, *, unit: str, source: str, part: str = ""
) -> Callable[[Callable[Arguments, Number]], Callable[Arguments, Number]]:
    """Mark a function as an equation, so that ``recording`` can show how a number came about."""

    def mark(function: Callable[Arguments, Number]) -> Callable[Arguments, Number]:
        signature = inspect.signature(function)

        @wraps(function)
        def evaluated(*arguments: Arguments.args, **named: Arguments.kwargs) -> Number:
            result = function(*arguments, **named)
            record = _record.get()
            if record is not None:
                bound = signature.bind(*arguments, **named)
                bound.apply_defaults()
                inputs = tuple((name, _single(value)) for name, value in bound.arguments.items())
                record.append(Derivation(function.__name__, part, formula, inputs, result, unit, source))
            return result

        return evaluated

    return mark


def _single(value: object) -> object:
    """Return an array of one number as that number."""
    return float(value) if isinstance(value, np.ndarray) and value.ndim == 0 else value


@contextmanager
def recording() -> Iterator[list[Derivation]]:
    """Collect the derivation of every equation evaluated inside the block."""
    record: list[Derivation] = []
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)
