"""What one plan comes to alongside others, and what a change would do, as plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory of the fullest device.

    Attributes:
        text: what is used of what there is, such as ``56.0/79.6 GiB``.
        share: the same as a number, None where it is not known how much there is.
    """

    text: str
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of the answer strip, which is always in sight.

    Attributes:
        text: the figure with the words it needs, such as ``$82`` or ``first token 56 ms``.
        interval: its range with units, or empty.
        rank: 0 where it is never left out for want of room; of the others the highest goes first.
    """

    text: str
    interval: str = ""
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a mode chose for an automatic field, and why."""

    text: str
    reason: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity of one plan.

    Attributes:
        key: what ``explain`` is asked for, such as ``memory.parts.activations``.
        label: what the row is called.
        text: the value as shown; ``n/a (reason)`` where there is none.
        value: the value in base units (bytes, seconds, tokens per second), for deltas.
        low: 10th percentile of the estimate, in the same unit.
        high: 90th percentile of the estimate, in the same unit.
        interval: the interval as shown, or empty.
        better: -1 where less is better, 1 where more is, 0 where neither.
        indent: nesting below the row above.
        brief: label where there is little room, or empty for the same.
        share: how full a bar before the value is, 1 for full; None for no bar.
        help: what it is and why it matters.
        role: of its colour where it is under a limit; empty for the usual one.
    """

    key: str
    label: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = ""
    better: int = 0
    indent: int = 0
    brief: str = ""
    share: float | None = None
    help: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A warning or a recommendation that goes with a plan."""

    title: str
    detail: str = ""
    saves: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One plan beside the others.

    Attributes:
        mode: its name.
        verdict: whether it fits.
        reason: which constraints it does not keep, or keeps by its estimate alone; empty where all hold surely.
        verdict_words: what the verdict says of this plan; empty for the words it always has.
        verdict_brief: the same where there is little room.
        rows: its quantities.
        chosen: every field as the plan has it in the end, by key.
        notes: warnings and recommendations.
        title: what stands over it; empty for its name.
        about: what it is, a line each.
        alike: names of the modes that make the same of the plan, its own among them; empty for its own alone.
        brief: its name where there is little room, or empty for the same.
        usage: memory of the fullest device.
        headlines: what the answer strip says besides the verdict, in order.
        is_pinned: whether it is a plan of its own, which stays as it is while the plan is edited.
    """

    mode: str
    verdict: Verdict
    reason: str
    rows: tuple[Row, ...]
    chosen: Mapping[str, Chosen] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    title: str = ""
    about: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    brief: str = ""
    usage: Usage | None = None
    headlines: tuple[Headline, ...] = ()
    is_pinned: bool = False
    verdict_words: str = ""
    verdict_brief: str = ""

    @property
    def head(self) -> str:
        """What stands over it."""
        return self.title or self.mode

    def is_of(self, mode: str) -> bool:
        """Whether this is what a mode makes of the plan."""
        return mode in (self.mode, *self.alike)

    def row(self, key: str) -> Row | None:
        """Return the row with this key, or None."""
        return next((row for row in self.rows if row.key == key), None)


@dataclass(frozen=True, slots=True)
class HardwareRow:
    """One fact about the machine, and how it is known."""

    label: str
    text: str
    origin: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the screen shows about one plan.

    Attributes:
        title: the plan in a few words: model, method or task, hardware, price.
        columns: the plans side by side.
        hardware: the machine that is planned for.
        simulated: what stands in the WHAT-IF badge, or empty on the machine's own hardware.
        remarks: what to know of the columns as a whole.
        usual: the mode whose column is chosen to begin with; empty for the one in the middle.
    """

    title: str
    columns: tuple[Column, ...]
    hardware: tuple[HardwareRow, ...] = ()
    simulated: str = ""
    remarks: tuple[str, ...] = ()
    usual: str = ""

    def column(self, mode: str) -> Column | None:
        """Return what a mode makes of the plan, or None."""
        return next((column for column in self.columns if column.is_of(mode)), None)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to one figure.

    Attributes:
        text: the figure, its new value and the difference.
        gain: 1 where that is better, -1 where it is worse, 0 where neither.
    """

    text: str
    gain: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """A change that would improve the plan.

    Attributes:
        title: what to do.
        change: fields of the plan and their new values.
        verdict: whether the plan fits with it.
        effects: all that it does.
        caution: what else it changes; empty for nothing.
    """

    title: str
    change: Mapping[str, object] = field(hash=False)
    verdict: Verdict
    effects: tuple[Effect, ...] = ()
    caution: str = ""
