"""A kind of figure: what it is called, how it is read and written, where it is shown, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from capacity_tui.engine.estimate.figure_readers import Figured, Reader
from capacity_tui.engine.keys import Figure

LESS, NEITHER, MORE = -1, 0, 1

Block: TypeAlias = Literal["", "model", "memory", "time", "cost", "law"]
Runs: TypeAlias = Literal["none", "all", "trained", "served", "not served", "loaded", "unloaded", "closed", "open"]
RUNS: Mapping[Runs, Callable[[Figured], bool]] = {
    "none": lambda _: False,
    "all": lambda _: True,
    "trained": lambda e: e.computation.iteration != "batch",
    "served": lambda e: e.computation.infer is not None,
    "not served": lambda e: e.computation.infer is None,
    "loaded": lambda e: e.computation.infer is not None and e.computation.infer.request_seconds is not None,
    "unloaded": lambda e: e.computation.infer is not None and e.computation.infer.request_seconds is None,
    "closed": lambda e: e.computation.steps is not None,
    "open": lambda e: e.computation.steps is None,
}
"""Kinds of runs: served under a load of requests or without one, jobs whose length is open or not."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A kind of figure.

    Attributes:
        key: its result key, which is its place in JSON.
        label: what it is called; ``{counted}`` stands for what the run counts (tokens, images), ``{iteration}`` for
            what is timed (step, batch, fit), ``{job}`` for the whole of the work, ``{total}`` and ``{both}`` say that
            prompts count as well as answers, ``{device}`` what a device is called.
        unit: unit of the value, with the same words.
        read: returns it from an estimate.
        better: ``LESS``, ``MORE`` or ``NEITHER``.
        brief: label where there is little room; empty for the same.
        head: name of its column; empty for the brief label.
        has_ends: whether JSON gives its range where it stands; else below ``ranges``.
        block: heading of reports that it stands under; empty where they leave it out.
        panel: runs for which the table of the plan shows it.
        saying_nothing: whether the figure of an estimate tells nothing new, and is left out.
        difference: runs of which two are compared by it: all, or those that do the same work.
        told: what a difference is told of; of several figures of one word the first that two runs have.
        column: what a column of alternatives tells; of several figures of one word the first that is known.
        rank: how soon the column gives way where there is little room, the highest first; 0 for never.
        words: short words for it in limits and goals.
        trained: such words of what is trained.
        served: such words of what is served.
        goal: what is wanted of it as a goal, where it is neither good nor bad by itself.
        open_length: the figure that leads to the same choice where the length of a job is open.
        help: what it is and why it matters, in two sentences.
    """

    key: str
    label: str
    unit: str
    read: Reader
    better: int = NEITHER
    brief: str = ""
    head: str = ""
    has_ends: bool = False
    block: Block = ""
    panel: Runs = "none"
    saying_nothing: Callable[[Figured], bool] | None = None
    difference: Literal["", "all", "same work"] = ""
    told: str = ""
    column: str = ""
    rank: int = 0
    words: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    goal: int = NEITHER
    open_length: Figure | None = None
    help: str = ""

    @property
    def name(self) -> str:
        """The label without what it adds in brackets, for sentences."""
        return self.label.partition(" (")[0]
