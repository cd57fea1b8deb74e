"""What rules exclude from a grid of layouts, counted and with an example."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np

from capacity_tui.engine.choose.space.grid import Grid, Values
from capacity_tui.engine.numeric import Flags
from capacity_tui.engine.plan import Layout, LayoutRule


@dataclass(frozen=True, slots=True)
class Excluded:
    """What one rule excluded that no rule before it did.

    Attributes:
        rule: the rule.
        count: combinations.
        example: plan fields of one of them.
        figures: the sizes of that one that show it.
    """

    rule: LayoutRule
    count: int
    example: Values
    figures: str

    @property
    def words(self) -> str:
        """What is wrong, with the sizes of the example."""
        return f"{self.rule.broken}: {self.figures}"


def satisfied(layout: Layout, rules: Iterable[LayoutRule]) -> Flags:
    """Return where layouts keep all rules; the array has only the axes that rules look at."""
    kept = np.asarray(True)
    for rule in rules:
        kept = kept & rule.holds(layout)
    return kept


def excluded(layout: Layout, grid: Grid, rules: Iterable[LayoutRule]) -> tuple[Excluded, ...]:
    """Return what the rules exclude, each combination by the first rule that it breaks."""
    kept = np.ones((1,) * len(grid.axes), dtype=np.bool_)
    rejections = []
    for rule in rules:
        still = kept & rule.holds(layout)
        gone = kept & ~still
        if gone.any():
            place = np.unravel_index(int(np.argmax(gone)), gone.shape)
            example = {axis.path: axis.values[int(at)] for axis, at in zip(grid.axes, place, strict=True)}
            figures = rule.figures(_single(layout, gone.shape, place))
            rejections.append(Excluded(rule, grid.count(gone), example, figures))
        kept = still
    return tuple(rejections)


def _single(layout: Layout, shape: tuple[int, ...], place: tuple[np.intp, ...]) -> Layout:
    """Return one of several layouts."""
    sizes = {entry.name: np.asarray(getattr(layout, entry.name)) for entry in fields(layout)}
    whole = np.broadcast_shapes(shape, *(size.shape for size in sizes.values()))
    at = tuple(int(where) % length for where, length in zip(place, whole, strict=True))
    return replace(layout, **{name: float(np.broadcast_to(size, whole)[at]) for name, size in sizes.items()})
