"""An attribute by the name that a document gives it: the value of another one, in the document's unit."""

from __future__ import annotations

from operator import attrgetter
from typing import Generic, TypeVar, cast, overload

T = TypeVar("T")


class Alias(Generic[T]):
    """The value at a path of attributes.

    Args:
        path: names with dots between them, from the object that has the alias.
    """

    def __init__(self, path: str) -> None:
        self._value = attrgetter(path)

    @overload
    def __get__(self, owner: None, kind: type) -> Alias[T]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> Alias[T] | T:
        """Return the value of an object; on the class itself, the alias."""
        return self if owner is None else self.value(owner)

    def value(self, owner: object) -> T:
        """Return the value of an object."""
        return cast("T", self._value(owner))


class Amount(Alias[float]):
    """A number at a path of attributes.

    Args:
        path: as of any alias.
        unit: how much of it is one in the unit of the alias.
    """

    def __init__(self, path: str, unit: float = 1.0) -> None:
        super().__init__(path)
        self._unit = unit

    def value(self, owner: object) -> float:
        """Return the number of an object."""
        return float(self._value(owner)) / self._unit
