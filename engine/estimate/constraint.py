"""What a run must keep: one limit beside what the run reaches of it, and what all of them come to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capacity_tui.engine.numeric import Flags, Labels, Number, first_label, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_quantity
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
