"""The one exception tree: each error says what happened, where, and what to do; and work that nobody waits for ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import ClassVar, TypeVar

from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass

_LONGEST_FIELD = 200  # Characters shown of a field's name: files may hold keys of any length


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's input an error is; any part may be unknown."""

    file: str | None = None  # path as the user gave it
    line: int | None = None
    field: str | None = None  # dotted path of the field, such as ``training.micro_batch``

    def __str__(self) -> str:
        position = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        field = self.field or ""
        shown = field if len(field) <= _LONGEST_FIELD else f"{field[: _LONGEST_FIELD - 3]}..."
        return ": ".join(part for part in (position, shown) if part)


class CapacityError(Exception):
    """Base of every error the program raises on purpose.

    Args:
        title: what happened, in one clause.
        detail: the particulars, if the title leaves any open.
        hint: what the user can do about it.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, title: str, detail: str = "", hint: str = "", place: Place | None = None) -> None:
        self.title = title
        self.detail = detail
        self.hint = hint
        self.place = place or Place()
        super().__init__(self.one_line())

    def in_place(self) -> str:
        """Return what happened and what to do as one printable line for whoever has just typed it: they know where."""
        title = ": ".join(part for part in (self.title, self.detail) if part)
        return printable(f"{title} ({self.hint})" if self.hint else title)

    def one_line(self) -> str:
        """Return place, title, detail and hint as one printable line."""
        line = ": ".join(part for part in (str(self.place), self.title, self.detail) if part)
        return printable(f"{line}; {self.hint}" if self.hint else line)


class PlanError(CapacityError):
    """A plan that cannot be read or does not make sense.

    Attributes:
        further: what else is wrong with it, where that was found at once.
    """

    further: tuple[PlanError, ...] = ()


def refuse_all(faults: Sequence[PlanError]) -> None:
    """Raise the first of some faults, the others as its ``further``; nothing happens where there is none."""
    if faults:
        faults[0].further = tuple(faults[1:])
        raise faults[0]


class CatalogError(CapacityError):
    """A catalogue file or row that cannot be used, or an unknown id."""


class HardwareError(CapacityError):
    """Hardware that was asked for cannot be described."""


class LauncherError(CapacityError):
    """The nodes of a cluster cannot be reached through what was named."""


class StorageError(CapacityError):
    """A file could not be read or written."""


class QueueError(CapacityError):
    """What queues the jobs of a cluster refuses one, or does not answer."""


class MissingPartError(CapacityError):
    """Something asked for by name (an extra, a driver) is not installed."""

    exit_code: ClassVar[int] = 3


class UnitError(CapacityError, ValueError):
    """A quantity that cannot be read: a size, a count, a duration or an amount of money."""


class DocumentError(CapacityError):
    """A YAML document that cannot be read as plain data."""


Result = TypeVar("Result")


class NoLongerWantedError(Exception):
    """Nobody waits for the answer that was being worked out."""


_is_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("is_wanted", default=None)


def while_wanted(work: Callable[[], Result], is_wanted: Callable[[], bool]) -> Result | None:
    """Return what some work comes to; None where nobody wanted it any more at a `stop_if_unwanted` inside it.

    Args:
        is_wanted: whether anybody still waits; asked about every millisecond, in the thread that works.
    """
    before = _is_wanted.set(is_wanted)
    try:
        return work()
    except NoLongerWantedError:
        return None
    finally:
        _is_wanted.reset(before)


def stop_if_unwanted() -> None:
    """Stop the work of this thread if nobody waits for it any more; estimates ask between their parts.

    Raises:
        NoLongerWantedError: nobody waits for it.
    """
    is_wanted = _is_wanted.get()
    if is_wanted is not None and not is_wanted():
        raise NoLongerWantedError
