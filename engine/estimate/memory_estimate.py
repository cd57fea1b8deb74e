"""Memory of a run, of the fullest device and the host, and what it must keep: limits beside what it reaches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Flags, Labels, Number, any_true, first_label, largest_label, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes, format_quantity
from capacity_tui.engine.verdict import Holds, Verdict


@dataclass(frozen=True, slots=True)
class Constraint:
    """A limit of one figure, and what a run reaches; of several plans where the numbers are arrays."""

    figure: str  # result key of the figure, or the plan key of a rule
    label: str
    unit: str = ""
    # what the run reaches, with its range; None for a rule, which stands here only where it is broken
    reached: Interval | None = None
    most: Number | None = None  # the most it may be; None where there is no such limit
    least: Number | None = None  # the least it may be, likewise
    why: str = ""  # where the limit comes from
    broken_as: Verdict = Verdict.MISSES_LIMIT  # the verdict on a run that does not keep it
    share_of: Number = 1.0  # how many devices share what the limit is for: words tell the sum of their shares

    @property
    def kept(self) -> Flags:
        """Which plans keep it by their estimate."""
        return np.asarray(False) if self.reached is None else self._inside(self.reached.value, self.reached.value)

    @property
    def kept_surely(self) -> Flags:
        """Which plans keep it at the far end of the range too."""
        return np.asarray(False) if self.reached is None else self._inside(self.reached.low, self.reached.high)

    @property
    def holding(self) -> Labels[Holds]:
        """Whether each plan keeps it."""
        return first_label({Holds.YES: self.kept_surely & self.kept, Holds.LIKELY: self.kept}, Holds.NO)

    @property
    def holds(self) -> Holds:
        """Whether a single plan keeps it."""
        return self.holding.single

    @property
    def limit(self) -> Number | None:
        """The limit itself, whichever way it is one."""
        return self.least if self.most is None else self.most

    @property
    def name(self) -> str:
        """What it is called, with the limit of one device: ``TTFT ≤ 1.00 s``."""
        if self.limit is None:
            return self.label
        return f"{self.label} {'≥' if self.most is None else '≤'} {self.written(self.limit)}"

    @property
    def words(self) -> str:
        """What a single plan reaches beside the limit: ``TTFT 15.8 s > 1.00 s``, ``memory up to 84 GiB > 80 GiB``."""
        if self.reached is None or self.limit is None:
            return self.why
        far, towards, over, within = (
            (self.reached.high, "up to ", ">", "≤") if self.least is None else (self.reached.low, "down to ", "<", "≥")
        )
        is_likely, sign = self.holds is Holds.LIKELY, within if self.holds is Holds.YES else over
        value = f"{towards}{self._shared(far)}" if is_likely else self._shared(self.reached.value)
        return f"{self.label} {value} {sign} {self._shared(self.limit)}{self._source}"

    @property
    def _source(self) -> str:
        return " (assumed)" if self.why.startswith(ASSUMED) else ""

    def _inside(self, low: Number, high: Number) -> Flags:
        above = True if self.least is None else np.greater_equal(low, self.least)
        below = True if self.most is None else np.less_equal(high, self.most)
        return np.asarray(np.logical_and(above, below), dtype=np.bool_)

    def written(self, value: Number) -> str:
        """Return a value of the figure, of one plan and one device."""
        number = mean(value)
        return format_quantity(number, self.unit) if np.isfinite(number) else "unbounded"

    def _shared(self, value: Number) -> str:
        return self.written(mean(value) * mean(self.share_of))


ASSUMED = "assumed"  # How a limit's source begins where nothing tells what there is


def verdicts(constraints: Sequence[Constraint], is_known: bool) -> Labels[Verdict]:
    """Return what constraints come to, plan by plan: the gravest of what is broken, else whether all hold surely."""
    broken = {
        verdict: _any([~constraint.kept for constraint in constraints if constraint.broken_as is verdict])
        for verdict in (Verdict.CANNOT_RUN, Verdict.DOES_NOT_FIT, Verdict.MISSES_LIMIT)
    }
    unsure = _any([~constraint.kept_surely for constraint in constraints])
    return first_label({**broken, Verdict.UNKNOWN: not is_known, Verdict.TIGHT: unsure}, Verdict.FITS)


def in_words(constraints: Sequence[Constraint], holds: Holds) -> str:
    """Return the words of the constraints of a single plan that hold so, unbounded figures only where alone."""
    chosen = [constraint for constraint in constraints if constraint.holds is holds]
    finite = [
        constraint
        for constraint in chosen
        if constraint.reached is None or np.all(np.isfinite(constraint.reached.value))
    ]
    return ", ".join(constraint.words for constraint in finite or chosen)


def _any(flags: Sequence[Flags]) -> Flags:
    anywhere = np.asarray(False)
    for flag in flags:
        anywhere = anywhere | flag
    return anywhere


RESERVED, HOST = Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_HOST_BYTES


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Bytes on one device of a pipeline stage."""

    per_device_bytes: Number  # peak as the framework's allocator counts it
    reserved_bytes: Number  # what the driver's tool would show


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on the fullest device."""

    per_device_bytes: Interval  # peak of what is allocated, as the framework's allocator counts it
    allocator_bytes: Interval  # what the allocator reserves for that: blocks it keeps included
    reserved_bytes: Interval  # what the driver's tool would show: allocator cache and context included
    parts: Mapping[str, Number]  # bytes by part; they sum to ``reserved_bytes``
    capacity_bytes: Number | None  # what the driver reports as usable, None where unknown
    host_bytes: Number  # host memory for one device's share
    # bytes inside the allocator at each place that may be the peak, by phase and pipeline stage in words
    places: Mapping[str, Number] = field(default_factory=dict)
    # bytes on the first, last and fullest pipeline stage; empty without a pipeline
    stages: Mapping[str, StageBytes] = field(default_factory=dict)
    # bytes inside the allocator on the fullest device by moment of a step; empty where only the peak is known
    timeline: Mapping[str, Number] = field(default_factory=dict)
    host_capacity_bytes: Number | None = None  # host memory there is for one device, None where unknown
    host_devices: Number = 1.0  # devices that share one host
    host_source: str = ""  # how its memory is known
    host_holds: str = ""  # what lies there that could lie on the device, in words

    @property
    def peaks(self) -> Labels[str]:
        """Where each plan's peak lies."""
        return largest_label(self.places or {"": 0.0})

    @property
    def peak(self) -> str:
        """Where the peak of a single plan lies; empty where only its size is known."""
        return self.peaks.single

    @property
    def fits(self) -> Flags | None:
        """Which plans the fullest device and its host hold as estimated; None where a device's memory is unknown."""
        if self.capacity_bytes is None:
            return None
        by_device = np.less_equal(self.reserved_bytes.value, self.capacity_bytes)
        if self.host_capacity_bytes is None:
            return by_device
        return by_device & np.less_equal(self.host_bytes, self.host_capacity_bytes)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the memory of a device, and of its host, ask of each plan; nothing where a size is unknown."""
        constraints = []
        if self.capacity_bytes is not None:
            usable = "what a program can use of a device's memory"
            constraints.append(self._constraint(RESERVED, "memory", self.reserved_bytes, self.capacity_bytes, usable))
        if self.host_capacity_bytes is not None and any_true(self.host_bytes > 0):
            host = Interval.exactly(self.host_bytes)
            limit, shared = self.host_capacity_bytes, self.host_devices
            constraints.append(self._constraint(HOST, "host memory", host, limit, self.host_source, shared))
        return tuple(constraints)

    @property
    def in_host(self) -> str:
        """What of a single plan lies in host memory that could lie on its devices, in words; empty for nothing."""
        if not self.host_holds or not mean(self.host_bytes):
            return ""
        shares = mean(self.host_devices)
        size = format_bytes(mean(self.host_bytes) * shares)
        if self.host_capacity_bytes is not None:
            assumed = ", assumed" if self.host_source.startswith(ASSUMED) else ""
            size = f"{size} of {format_bytes(mean(self.host_capacity_bytes) * shares)}{assumed}"
        return f"with {self.host_holds} in host memory ({size})"

    def _constraint(
        self, key: str, label: str, reached: Interval, most: Number, why: str, shared: Number = 1.0
    ) -> Constraint:
        return Constraint(key, label, "B", reached, most, None, why, Verdict.DOES_NOT_FIT, shared)


context_bytes = formula()
reserve_bytes = formula()

# Bytes the allocator holds beyond its peak on a device that may be too small for all it would like to keep.
kept_reserve = formula()
