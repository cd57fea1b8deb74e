"""How far measured runs lie from their estimates: wider for parts known badly and for runs unlike any measured.

The logarithm of measured over estimated has the variance

    variance = sum over parts of (share of the figure · spread of the part)² + (distance to what was measured)²

with the spreads of ``profiles/reliability.yaml``. The ends of a range are so many standard deviations away that
eight in ten runs of a further publisher lie inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.numeric import Number, added
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty.features import Bins, Nearest, RunFeatures, published_bins
from capacity_tui.engine.uncertainty.intervals import Range
from capacity_tui.engine.uncertainty.own_runs import OwnSpread

# What of a range is told by name: contributions above this share of its variance.
REPORTED_SHARE = 0.08
# Parts of a range in words, where their names do not say it.
_WORDS = {
    "base": "ordinary scatter",
    "unnamed": "no framework or engine named",
    "adapted": "the frozen base",
    "outside": "memory outside the allocator",
    "offloaded": "states on the host",
    "mixture": "experts",
    "own_runs": "runs of your own",
}
OWN_RUNS = "own_runs"


@dataclass(frozen=True, slots=True)
class ErrorTerms:
    """What makes one figure of a run unsure.

    Attributes:
        amounts: of every part, its share of the figure (times doublings of length and the like), by name of its spread.
        features: what the run is like.
        here: spreads found on this very machine, in place of those of published runs.
        own: what runs of the user's own say of this one.
    """

    amounts: Mapping[str, Number]
    features: RunFeatures = field(default_factory=RunFeatures)
    here: Mapping[str, float] = field(default_factory=dict)
    own: OwnSpread | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of the logarithm of measured over estimated, and what it is made of.

    Attributes:
        parts: contributions of parts, by name.
        nearest: the nearest published runs, and contributions of the distance to them.
    """

    parts: Mapping[str, Number]
    nearest: Nearest

    @property
    def variance(self) -> Number:
        """The sum of all contributions."""
        return added([*self.parts.values(), *self.nearest.squares.values()])

    @property
    def deviation(self) -> Number:
        """Standard deviation of the logarithm."""
        return np.sqrt(self.variance)


def figure_spread(error_terms: ErrorTerms, row: Reliability, bins: Bins | None) -> Spread:
    """Return how far measured runs lie from an estimate.

    Args:
        error_terms: what makes it unsure.
        row: spreads of such figures.
        bins: what was published of them; None for nothing.
    """
    spreads = {name: spread_here(name, usual, error_terms.here, row.repeat) for name, usual in row.spreads.items()}
    parts = {name: (spreads[name] * amount) ** 2 for name, amount in error_terms.amounts.items() if name in spreads}
    nearest = Nearest({}, {}, None) if bins is None else bins.nearest(error_terms.features, row.distances)
    spread = Spread(parts, nearest)
    return spread if error_terms.own is None else _with_own_runs(spread, error_terms.own)


def _with_own_runs(usual: Spread, own: OwnSpread) -> Spread:
    """Return a spread with what runs of the user's own say, as far as they are alike."""
    left = 1.0 - own.alike
    parts = {name: left * square for name, square in usual.parts.items()} | {OWN_RUNS: own.alike * own.variance}
    squares = {name: left * square for name, square in usual.nearest.squares.items()}
    return Spread(parts, replace(usual.nearest, squares=squares))


def spread_here(name: str, usual: float, here: Mapping[str, float], repeat: float) -> float:
    """Return the spread of a part: that of this machine where it is known, else the usual one.

    Args:
        name: the part.
        usual: its spread among published runs.
        here: spreads found on this machine.
        repeat: spread between runs of one plan, which no measurement goes below.
    """
    return max(here[name], repeat) if name in here else usual


def figure_range(error_terms: ErrorTerms, row: Reliability) -> Range:
    """Return the range of a figure, with what it rests on in words."""
    spread = figure_spread(error_terms, row, published_bins(row.id))
    deviation = spread.deviation
    alone = range_from(deviation, row)
    if np.ndim(deviation):
        return replace(alone, basis=_runs(row))  # of several runs there is no one reason
    return replace(alone, basis="; ".join((_runs(row), *_reasons(spread))), beyond=tuple(_beyond(error_terms, spread)))


def range_from(deviation: Number, row: Reliability) -> Range:
    """Return the range that a standard deviation of the logarithm makes: its ends are those of eight runs in ten."""
    return Range(np.exp(-row.below * deviation), np.exp(row.above * deviation))


def _runs(row: Reliability) -> str:
    if not row.measurements:
        return f"{row.name}: set by hand, no errors on published runs are behind it"
    return (
        f"measured over estimated, eight runs in ten: {row.name}, {row.measurements} published runs of "
        f"{row.publishers} publishers left out of the fit"
    )


def _reasons(spread: Spread) -> Iterator[str]:
    """Yield what brings most of the spread, and the runs that are nearest."""
    every = {**spread.parts, **spread.nearest.squares}
    whole = max(float(spread.variance), 1e-12)
    shares = sorted(((float(square) / whole, name) for name, square in every.items()), reverse=True)
    largest = [
        f"{_WORDS.get(name, name.replace('_', ' '))} {share:.0%}" for share, name in shares if share >= REPORTED_SHARE
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
