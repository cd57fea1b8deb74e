"""Runs of several plans as one run whose numbers are arrays, and back to the results of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

import numpy as np

Run = TypeVar("Run")


class UnlikeError(Exception):
    """Two runs differ in more than numbers, and so need an estimate each."""


def stacked(runs: Sequence[Run], shape: tuple[int, ...]) -> Run:
    """Return runs as one: a number that is the same in all of them stays one, another becomes an array.

    Args:
        runs: records of numbers, and of records of numbers.
        shape: shape of the arrays; the runs are in its order.

    Raises:
        UnlikeError: the runs differ in words, in kinds of records, or in what they have at all.
    """
    return cast("Run", _stacked(runs, shape))


def alike(one: object, other: object) -> bool:
    """Whether two runs differ in numbers alone, so that they can be stacked."""
    if one is other:
        return True
    if _is_number(one) and _is_number(other):
        return True
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(alike(getattr(one, entry.name), getattr(other, entry.name)) for entry in fields(one))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    return bool(one == other)


def _stacked(values: Sequence[object], shape: tuple[int, ...]) -> object:
    first = values[0]
    if all(value is first for value in values):
        return first
    if any(type(value) is not type(first) for value in values) and not all(map(_is_number, values)):
        raise UnlikeError
    if is_dataclass(first) and not isinstance(first, type):
        entries = {entry.name: [getattr(value, entry.name) for value in values] for entry in fields(first)}
        changed = {
            name: together
            for name, entry_values in entries.items()
            if (together := _stacked(entry_values, shape)) is not getattr(first, name)
        }
        return replace(first, **changed) if changed else first
    if isinstance(first, Mapping):
        maps = cast("Sequence[Mapping[str, object]]", values)
        if any(mapping.keys() != first.keys() for mapping in maps):
            raise UnlikeError
        return {key: _stacked([mapping[key] for mapping in maps], shape) for key in first}
    if all(map(_is_number, values)):
        numbers = [float(cast("float", value)) for value in values]
        return first if len(set(numbers)) == 1 else np.array(numbers).reshape(shape)
    if any(value != first for value in values):
        raise UnlikeError
    return first


def select(record: Run, place: tuple[int, ...], shape: tuple[int, ...]) -> Run:
    """Return what a record of arrays holds at one place of their shape.

    Args:
        record: numbers, arrays that broadcast to the shape, and records and mappings of them.
        place: where, in each dimension.
    """
    return cast("Run", _picked(record, place, shape))


def _picked(value: object, place: tuple[int, ...], shape: tuple[int, ...]) -> object:
    if isinstance(value, np.ndarray):
        selected = np.broadcast_to(value, shape)[place]
        return float(selected) if value.dtype.kind == "f" else np.asarray(selected)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for entry in fields(value):
            before = getattr(value, entry.name)
            after = _picked(before, place, shape)
            if after is not before:
                changed[entry.name] = after
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return {key: _picked(entry, place, shape) for key, entry in value.items()}
    return value


def _is_number(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
