"""What a piece of a search comes to: enough to go on with the best of it where the piece itself is gone."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.choose.search.answer import Rejected
from capacity_tui.engine.choose.space.grid import Axis, Values
from capacity_tui.engine.keys import Key

# Fields by which rows are of one kind, where a question wants few of each.
KIND_PATHS = (Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES)


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration that may be among the best.

    Attributes:
        order: the goal's figure and what settles ties; less is better, and what has the same is the same to a user.
        change: what makes it of the plan that was asked about.
    """

    order: tuple[float, ...]
    change: Values

    @property
    def score(self) -> float:
        """The goal's figure; less is better."""
        return self.order[0]

    @property
    def kind(self) -> tuple[str, ...]:
        """What runs on what."""
        return tuple(str(self.change.get(path)) for path in KIND_PATHS)


@dataclass(frozen=True, slots=True)
class FrontRow:
    """A configuration that may be on the front.

    Attributes:
        point: the compared figures, less of each being better.
        row: the configuration.
    """

    point: tuple[float, ...]
    row: Row


@dataclass(frozen=True, slots=True)
class BlockResult:
    """A piece of a search: a block of a space, what rules exclude from a space, or a space that cannot be.

    Attributes:
        evaluated: configurations that were judged.
        valid: those that no rule excludes.
        fitting: those of them that are held and keep every limit.
        rejected: what excluded the others.
        missed: what the valid ones that are not fitting miss.
        varied: the axes of a space, and what sets it apart.
        rows: those that may be among the best, by what the goal is.
        front: those that may be on the front.
    """

    evaluated: int = 0
    valid: int = 0
    fitting: int = 0
    rejected: tuple[Rejected, ...] = ()
    missed: tuple[Rejected, ...] = ()
    varied: tuple[Axis, ...] = ()
    rows: tuple[Row, ...] = ()
    front: tuple[FrontRow, ...] = ()
