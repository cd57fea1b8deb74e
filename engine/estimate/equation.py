"""Equations that can show their working: formula, the numbers put in, unit and source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, update_wrapper
from typing import Generic, ParamSpec, cast

import numpy as np

from capacity_tui.engine.numeric import Number

Arguments = ParamSpec("Arguments")
_ARGUMENT = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)

# How the meaning of an argument names its unit: "bytes of ...", "..., FLOP/s".
_FIRST_WORDS = {"bytes": "B", "seconds": "s", "FLOPs": "FLOP"}
_UNIT = re.compile(r", (FLOP/s|B/s|W|kWh|USD)\b")


@dataclass(frozen=True, slots=True)
class Input:
    """One number put into an equation.

    Attributes:
        name: the symbol it has in the formula.
        value: the number, or an array of them.
        unit: its unit, empty for a pure number.
        meaning: what it is, in words.
        derivation: the equation it comes from, None where it was given.
        told: how a figure of the hardware came about, empty for other numbers.
    """

    name: str
    value: object
    unit: str = ""
    meaning: str = ""
    derivation: Derivation | None = None
    told: str = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """One equation as it was evaluated.

    Attributes:
        name: the equation's name.
        part: result key it was evaluated for, empty for an inner step.
        formula: the formula as written.
        inputs: the numbers put in, under the symbols of the formula.
        result: what came out.
        unit: unit of the result.
        source: where the formula comes from.
    """

    name: str
    part: str
    formula: str
    inputs: tuple[Input, ...]
    result: Number
    unit: str
    source: str


@dataclass(slots=True)
class Record:
    """Derivations in the order of their evaluation; every later one knows the earlier ones it builds on.

    ``told`` says of numbers that no equation gave how they came about, by the very objects.
    """

    derivations: list[Derivation] = field(default_factory=list)
    told: dict[int, tuple[object, str]] = field(default_factory=dict)
    _origins: dict[int, tuple[object, Derivation]] = field(default_factory=dict)

    def add(self, derivation: Derivation, result: object) -> None:
        """Keep a derivation, and remember which object it gave: whoever is handed that object builds on it."""
        self.derivations.append(derivation)
        self._origins[id(result)] = (result, derivation)

    def branch(self) -> Record:
        """Return a record that goes on from here and leaves this one as it is."""
        return Record([*self.derivations], self.told, {**self._origins})

    def __iter__(self) -> Iterator[Derivation]:
        """Return the derivations in their order."""
        return iter(self.derivations)

    def origin(self, value: object) -> Derivation | None:
        """Return the derivation that gave this very object, None where no equation did."""
        return self._origins.get(id(value), (None, None))[1]


_record: ContextVar[Record | None] = ContextVar("record", default=None)


class Equation(Generic[Arguments]):
    """A function that is a formula; called like any other, it is recorded inside ``recording``."""

    def __init__(self, function: Callable[Arguments, Number], formula: str, unit: str, source: str, part: str) -> None:
        update_wrapper(self, function)
        self.function = function
        self.formula, self.unit, self.source, self.part = formula, unit, source, part

    def __call__(self, *arguments: Arguments.args, **named: Arguments.kwargs) -> Number:
        """Return the value."""
        result = self.function(*arguments, **named)
        record = _record.get()
        if record is not None:
            # An object of its own, where the function gives back a constant or what was put in: whoever is handed it
            # builds on this evaluation and no other.
            result = result * 1.0
            bound = _signature(self.function).bind(*arguments, **named)
            bound.apply_defaults()
            record.add(self._derivation(_values(bound), record, result), result)
        return result

    def for_part(self, part: str) -> Equation[Arguments]:
        """Return the equation as evaluated for one result key, where it serves several.

        ``sharded_bytes.for_part("memory.parts.gradients")(...)`` is recorded as the gradients' derivation.
        """
        if _record.get() is None:
            return self
        return Equation(self.function, self.formula, self.unit, self.source, part)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the numbers put in."""
        return tuple(_signature(self.function).parameters)

    def _derivation(self, values: Mapping[str, object], record: Record, result: Number) -> Derivation:
        meanings, inputs = _meanings(self.function), []
        for name, value in values.items():
            meaning = meanings.get(name, "")
            # What is added up has the unit of the sum.
            own = _unit_of(meaning) if name in self.symbols else self.unit
            derivation = record.origin(value)
            told = record.told.get(id(value), (None, ""))[1]
            unit = derivation.unit if derivation else own
            inputs.append(Input(name, single(value), unit, meaning, derivation, told))
        formula = self.formula.replace("{addends}", " + ".join(values))
        return Derivation(
            self.function.__name__,
            self.part,
            formula,
            tuple(inputs),
            cast("Number", single(result)),
            self.unit,
            self.source,
        )


def equation(
    formula: str, *, unit: str, source: str, part: str = ""
) -> Callable[[Callable[Arguments, Number]], Equation[Arguments]]:
    """Mark a function as an equation, so that ``recording`` can show how a number came about.

    Args:
        formula: the formula, its symbols named as the arguments; ``{addends}`` stands for the sum of them all.
        unit: unit of the result.
        source: where the formula comes from.
        part: the result key it gives, where it gives only one.
    """
    return lambda function: Equation(function, formula, unit, source, part)


@cache
def _signature(function: Callable[..., Number]) -> inspect.Signature:
    return inspect.signature(function)


@cache
def _meanings(function: Callable[..., Number]) -> dict[str, str]:
    """Return what each argument is, as the docstring says."""
    found = _ARGUMENT.findall(inspect.getdoc(function) or "")
    return {name: " ".join(meaning.split()).rstrip(".") for name, meaning in found}


def _values(bound: inspect.BoundArguments) -> dict[str, object]:
    """Return the numbers put in by their names, those of a sum without names of its own too."""
    values = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values.update(values.pop(name))
    return values


def _unit_of(meaning: str) -> str:
    named = _UNIT.search(meaning)
    return _FIRST_WORDS.get(meaning.partition(" ")[0], named[1] if named else "")


def single(value: object) -> object:
    """Return an array of one number as that number."""
    return float(value.item()) if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value


def origin(value: object) -> Derivation | None:
    """Return the recorded equation that gave this very object, None where none did or nothing is recorded."""
    record = _record.get()
    return None if record is None else record.origin(value)


@contextmanager
def recording(told: Iterable[tuple[object, str]] = (), *, after: Record | None = None) -> Iterator[Record]:
    """Collect the derivation of every equation evaluated inside the block.

    Args:
        told: numbers that equations are given, each with how it came about.
        after: what was recorded before, which the equations may build on; it stays as it is.
    """
    record = Record() if after is None else after.branch()
    record.told = {**record.told, **{id(value): (value, text) for value, text in told}}
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)


@contextmanager
def unrecorded() -> Iterator[None]:
    """Collect nothing inside the block: what is tried there to find a number is not how it came about."""
    token = _record.set(None)
    try:
        yield
    finally:
        _record.reset(token)
