"""What commands that try many plans have in common: what is asked, and a Ctrl-C that keeps the best so far."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from capacity_tui.engine.keys import Key

if TYPE_CHECKING:
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.solve.search import Question
    from capacity_tui.engine.solve.space import Axis

MODEL, HARDWARE, DEVICES = Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES


def question_of(
    plan: Plan,
    vary: tuple[str, ...],
    hardware: tuple[str, ...],
    devices: str | None,
    limits: tuple[str, ...],
    goal: str | None,
) -> Question:
    """Return what options ask of a plan.

    Raises:
        CapacityError: an axis, a limit or a goal that makes no sense.
    """
    from capacity_tui.engine.solve.search import Question, parse_axis, parse_goal, parse_limit

    task = plan.task or "train"
    asked: list[Axis] = [parse_axis(text) for text in vary]
    counts = parse_axis(f"{DEVICES}={devices}").values if devices else _values(asked, DEVICES)
    return Question(
        plan,
        tuple(axis for axis in asked if axis.path not in (MODEL, HARDWARE, DEVICES)),
        hardware=(*names_of(hardware), *map(str, _values(asked, HARDWARE))),
        devices=tuple(int(str(count)) for count in counts),
        models=tuple(map(str, _values(asked, MODEL))),
        limits=tuple(parse_limit(text, task) for text in limits),
        goal=parse_goal(goal, task) if goal else None,
    )


def names_of(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that were given with commas, or one after another."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def _values(axes: list[Axis], path: str) -> tuple[object, ...]:
    return tuple(value for axis in axes if axis.path == path for value in axis.values)


@contextmanager
def interrupted() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C be asked for instead of ending the program at once; a second one ends it."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, _: FrameType | None) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    try:
        signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread: nobody can press it here
        yield lambda: False
        return
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
