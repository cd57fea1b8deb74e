"""Work that ends early once nobody waits for its answer, so that what was asked since has the processor to itself."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

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
