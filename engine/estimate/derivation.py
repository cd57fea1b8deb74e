"""Equations that can show their working: formula, the numbers put in, unit and source."""

from __future__ import annotations

import inspect
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import field
from functools import cache, cached_property
from typing import Any, Generic, ParamSpec, TypeAlias, cast

import numpy as np

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import stop_if_unwanted
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass

Arguments = ParamSpec("Arguments")
Names: TypeAlias = str | tuple[str, ...]  # One name, or several of which any may hold
# What a number put in means; its unit, where it has one; the equations that give it, or the names of given numbers.
Symbol: TypeAlias = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Input:
    """One number put into an equation."""

    name: str  # the symbol it has in the formula
    value: object  # the number, or an array of them
    unit: str = ""  # its unit, empty for a pure number
    meaning: str = ""  # what it is, in words
    derivation: Derivation | None = None  # the equation it comes from, None where it was given
    provenance: str = ""  # where a given number comes from (datasheet, measurement, count); empty where nobody says


@dataclass(frozen=True, slots=True)
class Derivation:
    """One equation as it was evaluated."""

    name: str  # the equation's name
    part: str  # result key it was evaluated for, empty for an inner step
    formula: str  # the formula as written
    inputs: tuple[Input, ...]  # the numbers put in, under the symbols of the formula
    result: Number  # what came out
    unit: str  # unit of the result
    source: str  # where the formula comes from


@dataclass(frozen=True, slots=True)
class Given:
    """A number that no equation gives."""

    name: str  # what equations call it among the origins of a symbol: ``hardware.bandwidth``, ``counts.norm-kernels``
    value: object  # the number
    provenance: str  # where it comes from, in words


@dataclass(slots=True)
class Record:
    """Derivations in the order of their evaluation, found again by the name of their equation and their result."""

    derivations: list[Derivation] = field(default_factory=list)
    _given: dict[tuple[str, object], str] = field(default_factory=dict)
    _positions: dict[tuple[str, object], list[int]] = field(default_factory=dict)
    _before: Record | None = None

    def add(self, name: str, derivation: Derivation) -> None:
        """Record a derivation under a name."""
        self._positions.setdefault((name, _hashable(derivation.result)), []).append(len(self.derivations))
        self.derivations.append(derivation)

    def give(self, numbers: Iterable[Given]) -> None:
        """Record numbers that no equation gives."""
        for number in numbers:
            self._given.setdefault((number.name, _hashable(number.value)), number.provenance)

    def branch(self) -> Record:
        """Return a record that goes on from here and leaves this one as it is."""
        return Record([*self.derivations], self._given, _before=self)

    def __iter__(self) -> Iterator[Derivation]:
        return iter(self.derivations)

    def origin(self, value: object, names: Names, end: int | None = None) -> Derivation | None:
        """Return the latest of ``end`` derivations with this result under one of these names; None without."""
        key = _hashable(value)
        matches = (self._position(name, key, len(self.derivations) if end is None else end) for name in _all(names))
        position = next((match for match in matches if match is not None), None)
        return None if position is None else self.derivations[position]

    def _position(self, name: str, key: object, end: int) -> int | None:
        positions = self._positions.get((name, key), ())
        latest = bisect_left(positions, end)
        if latest:
            return positions[latest - 1]
        return None if self._before is None else self._before._position(name, key, end)

    def provenance(self, value: object, names: Names) -> str:
        """Return where a given number of one of these names and this value comes from; empty where there is none."""
        key = _hashable(value)
        return next((self._given[name, key] for name in _all(names) if (name, key) in self._given), "")


_record: ContextVar[Record | None] = ContextVar("record", default=None)


class Equation(Generic[Arguments]):
    """A function that is a formula; called like any other, it is recorded inside ``recording``.

    Text, unit, source and symbols stand in ``profiles/formulas``, in the file of its package; they are read when first
    needed. ``{addends}`` in a text stands for the sum of all that is put in, ``addends`` for the meaning of them all.
    """

    formula: str
    unit: str
    source: str
    part: str  # the result key it gives, where it gives only one
    meanings: Mapping[str, Symbol]

    def __init__(self, function: Callable[Arguments, Number] | None, module: str) -> None:
        self._function, self.__module__ = function, module
        if function is not None:
            self.__name__ = function.__name__

    def __getattr__(self, name: str) -> object:
        if name not in ("formula", "unit", "source", "part", "meanings"):
            raise AttributeError(name)
        row = _formulas("_".join(self.__module__.split(".")[2:-1]))[self.__name__]
        texts = {"unit": "", "part": "", **row, "meanings": row["symbols"]}
        vars(self).update({key: text for key, text in texts.items() if key not in vars(self)})
        return vars(self)[name]

    @cached_property
    def __name__(self) -> str:
        """The variable of its module that it is."""
        return next(name for name, value in vars(sys.modules[self.__module__]).items() if value is self)

    @cached_property
    def recorded_as(self) -> str:
        """The name that its results are known by."""
        return self.__name__

    @property
    def function(self) -> Callable[Arguments, Number]:
        """What computes it; made of the formula when it is first called, where that is all there is."""
        if self._function is None:
            self._function = _computed(self.formula, tuple(self.meanings))
        return self._function

    def __call__(self, *arguments: Arguments.args, **named: Arguments.kwargs) -> Number:
        """Return the value; raises NoLongerWantedError where nobody waits for it any more."""
        stop_if_unwanted()
        result = self.function(*arguments, **named)
        record = _record.get()
        if record is not None:
            bound = _signature(self.function).bind(*arguments, **named)
            bound.apply_defaults()
            record.add(self.recorded_as, self._derivation(_values(bound), record, result))
        return result

    def for_part(self, part: str) -> Equation[Arguments]:
        """Return the equation as evaluated for one result key, where it serves several.

        ``sharded_bytes.for_part("memory.parts.gradients")(...)`` is recorded as the gradients' derivation.
        """
        return self._with("part", part)

    def named(self, name: str) -> Equation[Arguments]:
        """Return the equation as recorded under ``<equation>.<name>``, for who is given two of its results."""
        return self._with("recorded_as", f"{self.recorded_as}.{name}")

    def with_origins(self, **origins: Names) -> Equation[Arguments]:
        """Return the equation with other origins of some numbers put in, where only the caller knows them."""
        known = {name: (*self.meaning(name)[:2], *_all(names)) for name, names in origins.items()}
        return self._with("meanings", {**self.meanings, **known})

    def _with(self, attribute: str, value: object) -> Equation[Arguments]:
        if _record.get() is None:
            return self
        changed = copy(self)
        changed.__name__ = self.__name__
        setattr(changed, attribute, value)
        return changed

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the numbers put in."""
        return tuple(_signature(self.function).parameters)

    def _derivation(self, values: Mapping[str, object], record: Record, result: Number) -> Derivation:
        return Derivation(
            self.__name__,
            self.part,
            self.formula.replace("{addends}", " + ".join(values)),
            tuple(self._input(name, value, record) for name, value in values.items()),
            cast("Number", single(result)),
            self.unit,
            self.source,
        )

    def _input(self, name: str, value: object, record: Record) -> Input:
        meaning, stated, names = self.meaning(name)
        derivation, provenance = record.origin(value, names), record.provenance(value, names)
        # What is added up has the unit of the sum.
        unit = derivation.unit if derivation else stated if name in self.symbols else self.unit
        return Input(name, single(value), unit, meaning, derivation, provenance)

    def meaning(self, name: str) -> tuple[str, str, Names]:
        """Return what a symbol means, its unit, and the equations or given numbers it may come from."""
        match self.meanings.get(name) or self.meanings.get("addends", ""):
            case str(meaning):
                return meaning, "", ()
            case (meaning, unit, *names):
                return meaning, unit, tuple(names)
        raise AssertionError(name)


def equation(function: Callable[Arguments, Number]) -> Equation[Arguments]:
    """Mark a function as an equation, so that ``recording`` can show how a number came about."""
    return Equation(function, function.__module__)


def formula() -> Equation[...]:
    """Return the equation that is computed as its formula is written, for a variable of a module, whose name it has."""
    return Equation(None, sys._getframe(1).f_globals["__name__"])


@cache
def _formulas(package: str) -> Mapping[str, Mapping[str, Any]]:
    return parse_shipped(f"formulas/{package}.yaml")


_SPELLING = {"·": "*", "^": "**"}
_WHOLE = re.compile(r"(?<![\w.])\d+(?: \d+)*(?![\w.])")
_OPERATIONS = {"min": np.minimum, "max": np.maximum, "ceil": np.ceil, "sqrt": np.sqrt, "exp": np.exp, "ln": np.log}


@cache
def _computed(formula: str, symbols: tuple[str, ...]) -> Callable[..., Number]:
    """Return the function that a formula such as ``rate = 2 · units / seconds`` is; whole numbers count as others."""
    text = _WHOLE.sub(lambda number: number[0].replace(" ", "") + ".0", formula.partition(" = ")[2])
    for sign, operator in _SPELLING.items():
        text = text.replace(sign, operator)
    return cast("Callable[..., Number]", eval(f"lambda {', '.join(symbols)}: {text}", _OPERATIONS))  # noqa: S307 - ours


@cache
def _signature(function: Callable[..., Number]) -> inspect.Signature:
    return inspect.signature(function)


def _values(bound: inspect.BoundArguments) -> dict[str, object]:
    """Return the numbers put in by their names, those of a sum without names of its own too."""
    values = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            values.update(values.pop(name))
    return values


def _all(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _hashable(value: object) -> object:
    """Return what equal numbers have in common; an array counts with its shape."""
    value = single(value)
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def single(value: object) -> object:
    """Return an array of one number as that number."""
    return float(value.item()) if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value


def origin(value: object, names: Names, end: int | None = None) -> Derivation | None:
    """Return ``Record.origin`` of what is being recorded; None outside ``recording``."""
    record = _record.get()
    return None if record is None else record.origin(value, names, end)


def recorded_count() -> int:
    """Return how many derivations have been recorded; 0 outside ``recording``."""
    record = _record.get()
    return 0 if record is None else len(record.derivations)


@contextmanager
def recording(given: Iterable[Given] = (), *, after: Record | None = None) -> Iterator[Record]:
    """Collect the derivation of every equation evaluated inside the block.

    Args:
        given: numbers that equations are given, with where they come from.
        after: what was recorded before, which the equations may build on; it stays as it is.
    """
    record = Record() if after is None else after.branch()
    record.give(given)
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
