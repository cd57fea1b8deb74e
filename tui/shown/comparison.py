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
    """Memory of the fullest device."""

    text: str  # what is used of what there is, such as ``56.0/79.6 GiB``
    share: float | None = None  # the same as a number, None where it is not known how much there is
    parts: tuple[MemoryPart, ...] = ()  # what takes it
    capacity: float | None = None  # bytes of the device, None where that is not known
    high: float | None = None  # bytes at the upper end of the range; None without one
    capacity_text: str = ""  # how much memory the device has, as shown
    interval: str = ""  # the range, as shown
    free: str = ""  # what is left of the device, as shown; empty where nothing is
    key: str = ""  # of the row that has the figure; empty for none


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of the answer strip, which is always in sight."""

    text: str  # the figure with the words it needs, such as ``$82`` or ``first token 56 ms``
    interval: str = ""  # its range with units, or empty
    rank: int = 0  # 0 where it is never left out for want of room; of the others the highest goes first
    key: str = ""  # of the row that has the figure; empty for none


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a mode chose for an automatic field, and why."""

    text: str
    reason: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity of one plan."""

    key: str  # what ``explain`` is asked for, such as ``memory.parts.activations``
    label: str  # what the row is called
    text: str  # the value as shown; ``n/a (reason)`` where there is none
    value: float | None = None  # the value in base units (bytes, seconds, tokens per second), for deltas
    low: float | None = None  # 10th percentile of the estimate, in the same unit
    high: float | None = None  # 90th percentile of the estimate, in the same unit
    interval: str = ""  # the interval as shown, or empty
    better: int = 0  # -1 where less is better, 1 where more is, 0 where neither
    indent: int = 0  # nesting below the row above
    brief: str = ""  # label where there is little room, or empty for the same
    share: float | None = None  # how full a bar before the value is, 1 for full; None for no bar
    help: str = ""  # what it is and why it matters
    role: str = ""  # of its colour where it is under a limit; empty for the usual one

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
    """One plan beside the others."""

    mode: str  # its name
    verdict: Verdict  # whether it fits
    reason: str  # which constraints it does not keep, or keeps by its estimate alone; empty where all hold surely
    rows: tuple[Row, ...]  # its quantities
    chosen: Mapping[str, Chosen] = field(default_factory=dict)  # every field as the plan has it in the end, by key
    notes: tuple[Note, ...] = ()  # warnings and recommendations
    title: str = ""  # what stands over it; empty for its name
    about: tuple[str, ...] = ()  # what it is, a line each
    # names of the modes that make the same of the plan, its own among them; empty for its own alone
    alike: tuple[str, ...] = ()
    brief: str = ""  # its name where there is little room, or empty for the same
    usage: Usage | None = None  # memory of the fullest device
    headlines: tuple[Headline, ...] = ()  # what the answer strip says besides the verdict, in order
    is_pinned: bool = False  # whether it is a plan of its own, which stays as it is while the plan is edited
    verdict_words: str = ""  # what the verdict says of this plan; empty for the words it always has
    verdict_brief: str = ""  # the same where there is little room
    missed: tuple[str, ...] = ()  # limits that are not kept besides the one that the verdict names

    @property
    def head(self) -> str:
        return self.title or self.mode

    def is_of(self, mode: str) -> bool:
        return mode in (self.mode, *self.alike)

    def row(self, key: str) -> Row | None:
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
    """Everything the screen shows about one plan."""

    title: str  # the plan in a few words: model, method or task, hardware, price
    columns: tuple[Column, ...]  # the plans side by side
    hardware: tuple[HardwareRow, ...] = ()  # the machine that is planned for
    simulated: str = ""  # what stands in the WHAT-IF badge, or empty on the machine's own hardware
    remarks: tuple[str, ...] = ()  # what to know of the columns as a whole
    usual: str = ""  # the mode whose column is chosen to begin with; empty for the one in the middle

    def column(self, mode: str) -> Column | None:
        return next((column for column in self.columns if column.is_of(mode)), None)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to one figure."""

    text: str  # the figure, its new value and the difference
    gain: int = 0  # 1 where that is better, -1 where it is worse, 0 where neither


@dataclass(frozen=True, slots=True)
class Advice:
    """A change that would improve the plan."""

    title: str  # what to do
    change: Mapping[str, object] = field(hash=False)  # fields of the plan and their new values
    verdict: Verdict  # whether the plan fits with it
    effects: tuple[Effect, ...] = ()  # all that it does
    caution: str = ""  # what else it changes; empty for nothing


@dataclass(frozen=True, slots=True)
class Trial:
    """The plan with one row taken, estimated."""

    verdict: Verdict  # what it comes to
    memory: str = ""  # what the fullest device holds of what it has
    time: str = ""  # of the job, of a token served, or of a step where the length of the job is open
    price: str = ""  # of an hour
    reason: str = ""  # why it cannot be estimated, or empty
    share: float | None = None  # memory as a share of what there is
    seconds: float | None = None  # the time as a number
    usd: float | None = None  # the price as a number
    cost: str = ""  # of the whole job; empty where its length is open
    cost_usd: float | None = None  # the same as a number
    source: str = ""  # whose price it is, and how old
    words: str = ""  # what the verdict says of it; empty for the words it always has
    also: str = ""  # fields that are filled otherwise than for the plan as it is, with their values


Key: TypeAlias = tuple[float, ...]
_NEVER = float("inf")
_KILO = 1024
_SHORT_FROM = 10_000
_COUNTED_FROM = 10_000_000


def _least(value: float | None) -> float:
    return _NEVER if value is None else value


def _suits(trial: Trial) -> float:
    """Return 0 for what may fit, so that nothing that does not is ever offered as the fastest or the cheapest."""
    return float(trial.verdict.holds is False)


ORDERS: dict[str, Callable[[Trial], Key]] = {
    "fit": lambda trial: (float(trial.verdict.gravity), _least(trial.cost_usd), _least(trial.seconds)),
    "memory": lambda trial: (_least(trial.share),),
    "time": lambda trial: (_suits(trial), _least(trial.seconds)),
    "cost": lambda trial: (_suits(trial), _least(trial.cost_usd), _least(trial.seconds)),
    "price": lambda trial: (_suits(trial), _least(trial.usd), _least(trial.seconds)),
}
"""By what a list can be sorted, the best first."""


_BEST: Mapping[str, Callable[[Trial], float | None]] = {
    "cheapest": lambda trial: trial.cost_usd if trial.cost_usd is not None else trial.usd,
    "fastest": lambda trial: trial.seconds,
    "safest": lambda trial: trial.share,
}
"""What is marked among the rows that fit: the least of a figure."""


def best_of(trials: Mapping[str, Trial]) -> dict[str, str]:
    """Return which choices are the cheapest, the fastest and the safest of those that fit, in words by their ids."""
    fitting = {name: one for name, one in trials.items() if one.verdict is Verdict.FITS}
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


def time_against(trial: Trial, start: Trial | None) -> str:
    """Return the difference to the time of the current value; of that itself, about how long it takes."""
    if trial is start or start is None or not start.seconds or trial.seconds is None:
        return _brief(trial.time)
    return f"{trial.seconds / start.seconds - 1:+.0%}".replace("%", " %")


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
