"""A value about hardware together with where it comes from, or why it is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Literal, Never, TypeVar

from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from capacity_tui.engine.numeric import Number

Origin = Literal["detected", "measured", "catalogue", "assumed", "given"]

ORIGINS: dict[Origin, str] = {
    "detected": "detected here",
    "measured": "measured here",
    "catalogue": "catalogue",
    "assumed": "assumed",
    "given": "given in the plan",
}
"""How a figure's origin reads in a sentence."""

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
MEASURED = "measured"  # Folder of the program's data with a file for each device that something was measured on


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a number that formulas read came about; ``source`` says where it is from, or what it is concluded from."""

    origin: Origin
    source: str

    def __str__(self) -> str:
        return f"{ORIGINS[self.origin]}: {self.source}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that formulas read, with its provenance."""

    value: Number
    origin: Origin
    source: str

    def __str__(self) -> str:
        return f"{ORIGINS[self.origin]}: {self.source}"


@dataclass(frozen=True, slots=True)
class Fact(Generic[T_co]):
    """One value with its provenance; whatever a file, a tool or a driver says, its texts are printable."""

    value: T_co | None  # the value, or None when it could not be read
    origin: Origin
    source: str  # where it is from, such as ``/proc/meminfo`` or ``NVML nvmlDeviceGetMemoryInfo``
    reason: str = ""  # why the value is missing; never empty when it is

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError(f"{self.source}: a missing value needs a reason")
        if isinstance(self.value, str):
            object.__setattr__(self, "value", printable_lines(self.value))
        object.__setattr__(self, "reason", printable(self.reason))

    def __str__(self) -> str:
        return f"n/a ({self.reason})" if self.value is None else str(self.value)

    @property
    def provenance(self) -> Provenance:
        """How the value came about."""
        return Provenance(self.origin, self.source)

    def map(self, change: Callable[[T_co], U]) -> Fact[U]:
        """Return the fact with its value changed; a missing one stays missing with its reason."""
        if self.value is None:
            return Fact(None, self.origin, self.source, self.reason)
        return Fact(change(self.value), self.origin, self.source, self.reason)

    def then(self, read: Callable[[T_co], Fact[U]]) -> Fact[U]:
        """Return the fact that the value leads to; a missing one stays missing with its reason."""
        return Fact(None, self.origin, self.source, self.reason) if self.value is None else read(self.value)

    def or_else(self, other: Fact[U]) -> Fact[T_co | U]:
        """Return this fact if it is known, else the other one if that is, else this one."""
        return other if self.value is None and other.value is not None else self


def detected(value: U, source: str) -> Fact[U]:
    """Return a value that was read on the machine itself."""
    return Fact(value, "detected", source)


def assumed(value: U, source: str) -> Fact[U]:
    """Return a value that was not read; ``source`` says what it is concluded from."""
    return Fact(value, "assumed", source)


def missing(source: str, reason: str) -> Fact[Never]:
    """Return a value that could not be read from ``source``, and why."""
    return Fact(None, "detected", source, reason)


def difference(total: Fact[int], part: Fact[int]) -> Fact[int]:
    """Return what there is besides a part of a total."""
    return part.then(lambda size: total.map(lambda whole: whole - size))
