"""What one plan comes to alongside others, and what it would be with other values, as plain frozen data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_count
from capacity_tui.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """What takes a part of a device's memory, such as ``weights``, and how many bytes."""

    label: str
    size: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory of the fullest device.

    Attributes:
        text: what is used of what there is, such as ``56.0/79.6 GiB``.
        share: the same as a number, None where it is not known how much there is.
        parts: what takes it.
        capacity: bytes of the device, None where that is not known.
        high: bytes at the upper end of the range; None without one.
        capacity_text: how much memory the device has, as shown.
        interval: the range, as shown.
        free: what is left of the device, as shown; empty where nothing is.
        key: of the row that has the figure; empty for none.
    """

    text: str
    share: float | None = None
    parts: tuple[MemoryPart, ...] = ()
    capacity: float | None = None
    high: float | None = None
    capacity_text: str = ""
    interval: str = ""
    free: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of the answer strip, which is always in sight.

    Attributes:
        text: the figure with the words it needs, such as ``$82`` or ``first token 56 ms``.
        interval: its range with units, or empty.
        rank: 0 where it is never left out for want of room; of the others the highest goes first.
        key: of the row that has the figure; empty for none.
    """

    text: str
    interval: str = ""
    rank: int = 0
    key: str = ""


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

    def share_above(self, before: Row) -> float | None:
        """Return by which share of an earlier value this one is above it; None where one of them is not known."""
        if self.value is None or not before.value:
            return None
        return (self.value - before.value) / abs(before.value)


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
        missed: limits that are not kept besides the one that the verdict names.
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
    missed: tuple[str, ...] = ()

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


@dataclass(frozen=True, slots=True)
class Tried:
    """The plan with one row taken, estimated.

    Attributes:
        verdict: what it comes to.
        memory: what the fullest device holds of what it has.
        time: of the job, of a token served, or of a step where the length of the job is open.
        price: of an hour.
        reason: why it cannot be estimated, or empty.
        share: memory as a share of what there is.
        seconds: the time as a number.
        usd: the price as a number.
        cost: of the whole job; empty where its length is open.
        cost_usd: the same as a number.
        source: whose price it is, and how old.
        words: what the verdict says of it; empty for the words it always has.
        also: fields that are filled otherwise than for the plan as it is, with their values.
    """

    verdict: Verdict
    memory: str = ""
    time: str = ""
    price: str = ""
    reason: str = ""
    share: float | None = None
    seconds: float | None = None
    usd: float | None = None
    cost: str = ""
    cost_usd: float | None = None
    source: str = ""
    words: str = ""
    also: str = ""


Key: TypeAlias = tuple[float, ...]
_NEVER = float("inf")
_KILO = 1024
_SHORT_FROM = 10_000
_COUNTED_FROM = 10_000_000


def _least(value: float | None) -> float:
    return _NEVER if value is None else value


def _suits(tried: Tried) -> float:
    """Return 0 for what may fit, so that nothing that does not is ever offered as the fastest or the cheapest."""
    return float(tried.verdict.holds is False)


ORDERS: dict[str, Callable[[Tried], Key]] = {
    "fit": lambda tried: (float(tried.verdict.gravity), _least(tried.cost_usd), _least(tried.seconds)),
    "memory": lambda tried: (_least(tried.share),),
    "time": lambda tried: (_suits(tried), _least(tried.seconds)),
    "cost": lambda tried: (_suits(tried), _least(tried.cost_usd), _least(tried.seconds)),
    "price": lambda tried: (_suits(tried), _least(tried.usd), _least(tried.seconds)),
}
"""By what a list can be sorted, the best first."""


_BEST: Mapping[str, Callable[[Tried], float | None]] = {
    "cheapest": lambda tried: tried.cost_usd if tried.cost_usd is not None else tried.usd,
    "fastest": lambda tried: tried.seconds,
    "safest": lambda tried: tried.share,
}
"""What is marked among the rows that fit: the least of a figure."""


def best_of(tried: Mapping[str, Tried]) -> dict[str, str]:
    """Return which choices are the cheapest, the fastest and the safest of those that fit, in words by their ids."""
    fitting = {name: one for name, one in tried.items() if one.verdict is Verdict.FITS}
    words: dict[str, list[str]] = {}
    for word, value in _BEST.items():
        known = {name: number for name, one in fitting.items() if (number := value(one)) is not None}
        if len(known) > 1:
            words.setdefault(min(known, key=lambda name: known[name]), []).append(word)
    return {name: " ".join(these) for name, these in words.items()}


def is_called(name: str, words: Sequence[str]) -> bool:
    """Return whether parts of an id begin with what was typed: h200 means h200-sxm rather than gh200."""
    parts = name.casefold().split("-")
    return all(name.casefold().startswith(word) or any(part.startswith(word) for part in parts) for word in words)


def time_against(tried: Tried, start: Tried | None) -> str:
    """Return the difference to the time of the current value; of that itself, about how long it takes."""
    if tried is start or start is None or not start.seconds or tried.seconds is None:
        return _brief(tried.time)
    return f"{tried.seconds / start.seconds - 1:+.0%}".replace("%", " %")


def _brief(time: str) -> str:
    """Return a time without what it is of, and without the smaller of two units, which the larger one tells."""
    words = time.partition("/")[0].split()
    first = next((index for index, word in enumerate(words) if word[0].isdigit()), 0)
    return " ".join(words[first : first + 3])


def short_value(value: str) -> str:
    """Return a long number in thousands of 1024 where it is a multiple, a very long one in millions or billions."""
    number = int(value) if value.isdigit() else 0
    if number >= _COUNTED_FROM:
        return format_count(number).replace(" ", "")
    return f"{number // _KILO}k" if number >= _SHORT_FROM and number % _KILO == 0 else value
