"""Work that ends early once nobody waits for its answer, so that what was asked since has the processor to itself."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

Answer = TypeVar("Answer")


class NoLongerWantedError(Exception):
    """Nobody waits for the answer that was being worked out."""


_is_wanted: ContextVar[Callable[[], bool] | None] = ContextVar("is_wanted", default=None)


def while_wanted(work: Callable[[], Answer], is_wanted: Callable[[], bool]) -> Answer | None:
    """Return what some work comes to; None where it ended at the first `go_on` at which nobody wanted it any more.

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


def go_on() -> None:
    """Return if the work of this thread is wanted; estimates ask between their parts.

    Raises:
        NoLongerWantedError: nobody waits for it.
    """
    is_wanted = _is_wanted.get()
    if is_wanted is not None and not is_wanted():
        raise NoLongerWantedError
