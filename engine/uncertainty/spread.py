"""How sure a figure is: what is known before it is computed, the spread of runs like it, and the range of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.cluster import Level
from capacity_tui.engine.machine import FitError
from capacity_tui.engine.numeric import Number, added
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty.user_runs import (
    DISTANCE,
    SMALLEST,
    Bins,
    Nearest,
    RunFeatures,
    UserRuns,
    UserSpread,
    published_bins,
)

REPORTED_SHARE = 0.08  # What of a range is named: contributions above this share of its variance
OWN_RUNS = "own_runs"
# What waits for its exchanges, whose times are those of the collectives that a network is measured by. How far other
# parts hide behind kernels, or how evenly tokens go to experts, no timing of a network tells.
EXCHANGES = "tensor_parallel"


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its range."""

    value: Number  # the estimate
    low: Number  # lower end: of ten runs like it, one was measured below
    high: Number  # upper end: one was measured above

    @classmethod
    def exactly(cls, value: Number) -> Interval:
        """Return a value that is known, or whose range nobody knows: both ends are the value itself."""
        return cls(value, value, value)

    @property
    def ends(self) -> tuple[Number, Number, Number]:
        """The value, and both ends of its range."""
        return self.value, self.low, self.high

    def scaled(self, factor: Number) -> Interval:
        """Return the value and its range times a factor."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def at_least(self, certain: Number) -> Interval:
        """Return the value with a range that does not go below what is certain."""
        return Interval(self.value, np.minimum(np.maximum(self.low, certain), self.value), self.high)

    def at_most(self, certain: Number) -> Interval:
        """Return the value with a range that does not go above what is certain."""
        return Interval(self.value, self.low, np.maximum(np.minimum(self.high, certain), self.value))


@dataclass(frozen=True, slots=True)
class Range:
    """Ratios of measured to estimated, and where they come from."""

    # low, high: the ratios at both ends
    low: Number
    high: Number
    basis: str = ""  # which runs they come from, and what widens them, in words
    beyond: tuple[str, ...] = ()  # what of the run nobody measured, in words

    def around(self, value: Number) -> Interval:
        """Return a value with this range."""
        return Interval(value, value * self.low, value * self.high)

    @property
    def inverse(self) -> Range:
        """The range of a rate, where this is that of its time."""
        return Range(1.0 / self.high, 1.0 / self.low, self.basis, self.beyond)


def existing(value: Number | Interval | None) -> Number | Interval | None:
    """Return a value, or None where a single one is infinite: there is no such figure. Arrays stay as they are."""
    number = value.value if isinstance(value, Interval) else value
    return None if number is None or (np.ndim(number) == 0 and np.isinf(number)) else value


@dataclass(frozen=True, slots=True)
class ErrorTerms:
    """What makes one figure of a run unsure."""

    # of every part, its share of the figure (times doublings of length and the like), by name of its spread
    amounts: Mapping[str, Number]
    features: RunFeatures = field(default_factory=RunFeatures)  # what the run is like
    # spreads found on this very machine, in place of those of published runs
    here: Mapping[str, float] = field(default_factory=dict)
    own: UserSpread | None = None  # what runs of the user's own say of this one
    kind: str = ""  # of the run, by which the ends of ranges may differ


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of the logarithm of measured over estimated, and what it is made of."""

    parts: Mapping[str, Number]  # contributions of parts, by name
    nearest: Nearest  # the nearest published runs, and contributions of the distance to them

    @property
    def variance(self) -> Number:
        """The sum of all contributions."""
        return added([*self.parts.values(), *self.nearest.squares.values()])

    @property
    def deviation(self) -> Number:
        """Standard deviation of the logarithm."""
        return np.sqrt(self.variance)

    @property
    def deviations(self) -> dict[str, Number]:
        """Standard deviation that each part brings, that of the distance to published runs among them."""
        return {
            **{name: np.sqrt(square) for name, square in self.parts.items()},
            DISTANCE: np.sqrt(added(self.nearest.squares.values())),
        }


def figure_spread(error_terms: ErrorTerms, row: Reliability, bins: Bins | None) -> Spread:
    """Return how far measured runs lie from an estimate."""
    spreads = {name: spread_here(name, usual, error_terms.here, row.repeat) for name, usual in row.spreads.items()}
    parts = {name: (spreads[name] * amount) ** 2 for name, amount in error_terms.amounts.items() if name in spreads}
    nearest = Nearest({}, {}, None) if bins is None else bins.nearest(error_terms.features, row.distances)
    spread = Spread(parts, nearest)
    return spread if error_terms.own is None else _with_user_runs(spread, error_terms.own)


def _with_user_runs(usual: Spread, own: UserSpread) -> Spread:
    """Return a spread with what runs of the user's own say: what they leave of it, or what they add."""
    variance, before = own.variance(usual.deviations), np.maximum(usual.variance, SMALLEST)
    left = np.minimum(variance / before, 1.0)
    parts = {name: left * square for name, square in usual.parts.items()}
    parts[OWN_RUNS] = np.maximum(variance - before, 0.0)
    squares = {name: left * square for name, square in usual.nearest.squares.items()}
    return Spread(parts, replace(usual.nearest, squares=squares))


def spread_here(name: str, usual: float, here: Mapping[str, float], repeat: float) -> float:
    """Return the spread of a part: that of this machine, not below its repeats, where known, else the usual one."""
    return max(here[name], repeat) if name in here else usual


def figure_range(error_terms: ErrorTerms, row: Reliability) -> Range:
    """Return the range of a figure, with what it rests on in words."""
    spread = figure_spread(error_terms, row, published_bins(row.id))
    deviation = spread.deviation
    alone = range_from(deviation, row, error_terms.kind)
    if np.ndim(deviation):
        return replace(alone, basis=_runs(row))  # of several runs there is no one reason
    return replace(alone, basis="; ".join((_runs(row), *_reasons(spread))), beyond=tuple(_beyond(error_terms, spread)))


def range_from(deviation: Number, row: Reliability, kind: str = "") -> Range:
    """Return the range that a standard deviation of the logarithm makes: that of eight runs in ten, within bounds."""
    below, above = row.kinds.get(kind, (row.below, row.above))
    low, high = np.exp(-below * deviation), np.exp(above * deviation)
    if row.most is None:
        return Range(low, high)
    least, most = row.most
    return Range(np.maximum(low, least), np.minimum(high, most))


def _runs(row: Reliability) -> str:
    if not row.measurements:
        return f"{row.name}: set by hand, no errors on published runs are behind it"
    return (
        f"measured over estimated, eight runs in ten: {row.name}, {row.measurements} published runs of "
        f"{row.publishers} publishers left out of the fit"
    )


@cache
def spread_words() -> Mapping[str, Mapping[str, Any]]:
    """Return what widens ranges, in words, and what can be measured to narrow them."""
    return parse_shipped("spreads.yaml")


def _reasons(spread: Spread) -> Iterator[str]:
    """Yield what brings most of the spread, and the runs that are nearest."""
    every, words = {**spread.parts, **spread.nearest.squares}, spread_words()["parts"]
    whole = max(float(spread.variance), 1e-12)
    shares = sorted(((float(square) / whole, name) for name, square in every.items()), reverse=True)
    largest = [
        f"{words.get(name, name.replace('_', ' '))} {share:.0%}" for share, name in shares if share >= REPORTED_SHARE
    ]
    if largest:
        yield f"width of the range: {', '.join(largest)}"
    if spread.nearest.bin is not None:
        yield f"nearest published: {spread.nearest.bin.text}"


def _beyond(error_terms: ErrorTerms, spread: Spread) -> Iterator[str]:
    """Yield in what a run differs from all that was published, where that widens its range."""
    nearest = spread.nearest
    if nearest.bin is None:
        return
    words, published, whole = error_terms.features.words, nearest.bin, float(spread.variance)
    for name, amount in nearest.amounts.items():
        if not float(nearest.squares[name]) > REPORTED_SHARE * whole:
            continue
        if name in words:
            yield f"{name} {words[name]} (nearest published: {published.words[name]})"
        elif name in published.low:
            number = float(error_terms.features.numbers[name])
            end = "above" if number > published.high[name] else "below"
            nearest_number = published.high[name] if end == "above" else published.low[name]
            yield f"{name} {number:,.4g}, {2.0 ** float(amount):.3g} times {end} {nearest_number:,.4g}"
        else:
            yield f"{name} (nearest published: {published.text})"


@dataclass(frozen=True, slots=True)
class MeasuredNetworks:
    """Networks of a cluster, all of them measured."""

    inside: Number  # devices that reach each other without them
    spread: float  # standard deviation of the logarithm of measured over estimated of collectives over them


def measured_networks(networks: Sequence[Level], inside: Number) -> MeasuredNetworks | None:
    """Return how sure the networks around what devices reach directly are; None unless each was measured."""
    errors = [level.error for level in networks if level.error is not None]
    if not errors or len(errors) < len(networks):
        return None
    return MeasuredNetworks(inside, DEVIATIONS_IN_A_MEDIAN * max(errors))


FigureName = Literal["step", "prefill", "decode", "memory", "ttft", "ttft-tail", "tpot", "tpot-tail"]
"""What has a range of its own; the last four under a load: the mean or median, and a high percentile."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the ranges of a run rest on."""

    rows: Mapping[FigureName, Reliability] = field(default_factory=dict)  # spreads of its kind of figures, by figure
    features: RunFeatures = field(default_factory=RunFeatures)  # what the run is like
    # properties that make it less sure, 1 or 0, by name of their spread
    flags: Mapping[str, Number] = field(default_factory=dict)
    here: Mapping[str, float] = field(default_factory=dict)  # spreads found on this very machine
    # runs of the user's own on such a device, and what this one is like among them, with its memory outside the
    # allocator without them, bytes
    own: tuple[UserRuns, RunFeatures, float] | None = None
    known: Mapping[FigureName, Range] = field(default_factory=dict)  # ranges that are given as they are, by figure
    networks: MeasuredNetworks | None = None  # how sure the networks are, where they were measured
    # rate over the estimated one of the slowest runs of the same plan, where no plan says what slows them; else 1
    least_rate: float = 1.0
    least_because: str = ""  # what slows them
    kind: str = ""  # of the run: its task


DEVIATIONS_IN_A_MEDIAN = 1.4826  # A normal deviation over the median of absolute deviations

# What is sampled of kernels, by the beginning of its name; and what is timed of whole runs.
KERNELS = ("gemm.", "attention")

COLLECTIVES = "collectives"


def sampled_in(errors: Sequence[FitError], dtype: str) -> tuple[FitError, ...]:
    """Return the errors that say something of kernels in a type: those of other types' kernels are left out."""
    return tuple(error for error in errors if not error.name.startswith(KERNELS) or error.name.endswith(f".{dtype}"))


def spreads_here(errors: Sequence[FitError]) -> Mapping[str, float]:
    """Return the spreads that samples of this machine leave, by the names of what they measured."""
    spreads: dict[str, float] = {}
    kernels = [
        error.median if error.interpolated is None else error.interpolated
        for error in errors
        if error.name.startswith(KERNELS)
    ]
    if kernels:
        spreads["kernels"] = DEVIATIONS_IN_A_MEDIAN * max(kernels)
    for error in errors:
        if error.name == COLLECTIVES:
            # What exchanges inside a node wait for is what was sampled; how far others hide is not.
            spreads["tensor_parallel"] = DEVIATIONS_IN_A_MEDIAN * error.median
    return spreads
