"""Spreads of measured over estimated, from the errors on publishers a fit has not seen.

A sample is one run with the logarithm of measured over estimated, once with its publisher left out of the fit and once
more with its framework withheld. Every publisher counts once, nothing is dropped by its size: the likelihood is that of
Student's distribution, whose tails are heavy. The ends of ranges are conformal: quantiles of error over spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from capacity_tui.engine.uncertainty import RunFeatures
from capacity_tui.engine.uncertainty.user_runs import Bin, Bins
from tools.calibrate.constants import SpreadPriors

Floats = NDArray[np.float64]
# Degrees of freedom of Student's distribution.
FREEDOM = 4.0
# Independent errors that the runs of one publisher are worth.
WORTH = 4.0
# Standard deviation of the logarithm of a spread around what it is set to before any run is seen.
PRIOR_SPREAD = 0.7
# What a range is to hold of a further publisher's runs, and how much of a publisher counts for the one to come:
# quantiles lie between one publisher and the next, so that half is enough. Shares of known errors that are tried.
HELD, FURTHER, SHARES = 0.8, 0.5, 16
# Share tried first for one kind of runs, whose publishers may lie closer together than all of them do.
LEAST = 0.6
# All runs, whatever their kind, and the publishers a kind of runs has at least that has ends of its own.
ANY, FEWEST = "", 2
# Squared difference from the cells of a run's own publisher, which are no help to it.
FAR = 1e9
# Spreads of any run and of software that is not named, and the factors tried to widen them by.
BASE, UNNAMED = "base", "unnamed"
WIDER = (1.0, 1.1, 1.2, 1.35, 1.5, 1.7, 2.0, 2.4, 3.0)
# No quantile beyond this is taken from a handful of publishers.
FURTHEST = 0.985


@dataclass(frozen=True, slots=True)
class Sample:
    """One error."""

    publisher: str  # who measured it
    error: float  # ln(measured / estimated) of a time or of bytes
    amounts: Mapping[str, float]  # what makes the figure unsure, by name of its spread
    features: RunFeatures  # what the run is like
    withheld: bool = False  # whether the estimate was not told the framework
    group: str = ""  # what is left out with it: the publisher's runs, where nothing is said
    kind: str = ANY  # of the run, by which ends of ranges differ
    least: tuple[float, float] | None = None  # measured over estimated that its range holds at least


Ends: TypeAlias = Mapping[str, tuple[float, float]]
"""How many spreads lie between an estimate and the ends of its range, below and above, by kind of run."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Spreads of one kind of figure."""

    spreads: Mapping[str, float]  # as a row of reliability.yaml has them
    distances: Mapping[str, float]  # as a row of reliability.yaml has them
    ends: Ends  # spreads to both ends of a range, of all runs and of each kind


def binned(runs: Iterable[tuple[str, RunFeatures]]) -> tuple[Bin, ...]:
    """Return single runs, of which publisher and features are known, as bins."""
    groups: dict[tuple[object, ...], list[tuple[str, RunFeatures]]] = {}
    for publisher, features in runs:
        key = (publisher, tuple(features.words.items()), _shared(features))
        groups.setdefault(key, []).append((publisher, features))
    return tuple(_together(group) for group in groups.values())


def _shared(features: RunFeatures) -> frozenset[str]:
    return frozenset(name for name, is_used in features.splits.items() if float(is_used) > 0)


def _together(group: Sequence[tuple[str, RunFeatures]]) -> Bin:
    publisher, first = group[0]
    numbers = {name: [float(features.numbers[name]) for _, features in group] for name in first.numbers}
    low, high = ({name: end(values) for name, values in numbers.items()} for end in (min, max))
    return Bin(publisher, first.words, _shared(first), low, high, len(group))


class Errors:
    """The errors of one kind of figure, with what their spread may depend on as arrays.

    Args:
        samples: the errors.
        priors: the spreads before any run is seen.
    """

    def __init__(self, samples: Sequence[Sample], priors: SpreadPriors) -> None:
        self.samples = tuple(samples)
        self.parts, self.distances = tuple(priors.spreads), tuple(priors.distances)
        self.prior = np.log([*priors.spreads.values(), *priors.distances.values()])
        self.cells = binned((each.publisher, each.features) for each in samples if not each.withheld)
        keys = [each.group or each.publisher for each in samples]
        self.groups = tuple(dict.fromkeys(keys))
        self._keys = np.array(keys)
        self._withheld = np.array([each.withheld for each in samples], dtype=np.bool_)
        self._kind = np.array([each.kind for each in samples])
        owners = Counter(kind for kind, _ in dict.fromkeys((each.kind, each.publisher) for each in samples))
        self.kinds = (ANY, *(kind for kind, count in owners.items() if count >= FEWEST and len(owners) > 1))
        self.errors = np.array([each.error for each in samples])
        self._amounts = np.array([[each.amounts.get(name, 0.0) for name in self.parts] for each in samples]) ** 2
        self._squares, self._kinds = self._differences()

    def _differences(self) -> tuple[Floats, NDArray[np.intp]]:
        """Return squared differences from every cell of another publisher, of each kind of run, and the runs' kinds."""
        table, owners = Bins(self.cells), np.array([cell.publisher for cell in self.cells])
        kinds: dict[tuple[str, str], int] = {}
        places = np.zeros(len(self.samples), dtype=np.intp)
        found: list[Floats] = []
        for place, each in enumerate(self.samples):
            key = each.publisher, repr(each.features)
            if key not in kinds:
                kinds[key] = len(found)
                differences = table.differences(each.features)
                columns = [np.broadcast_to(differences.get(name, 0.0), len(self.cells)) for name in self.distances]
                squares = np.stack(columns, axis=-1) ** 2 if columns else np.zeros((len(self.cells), 0))
                found.append(np.where((owners == each.publisher)[:, None], FAR, squares))
            places[place] = kinds[key]
        return np.stack(found), places

    def places(self, group: str, *, own: bool = True) -> NDArray[np.intp]:
        """Return where the samples of a group stand, or those of all others."""
        return np.flatnonzero((self._keys == group) == own)

    def weights(self, chosen: NDArray[np.intp]) -> Floats:
        """Return weights with which each group counts alike."""
        count = Counter(self._keys[chosen])
        return np.array([WORTH / count[key] for key in self._keys[chosen]])

    def features(self, logarithms: Floats, chosen: NDArray[np.intp]) -> Floats:
        """Return the squared amounts of each spread; of distances those to the nearest cell of another publisher."""
        nearest = np.argmin(self._squares @ np.exp(2.0 * logarithms[len(self.parts) :]), axis=1)
        squares = self._squares[np.arange(len(nearest)), nearest]
        squares = np.where(squares < FAR, squares, 0.0)  # nobody else measured anything: nothing is known of distances
        return np.concatenate((self._amounts[chosen], squares[self._kinds[chosen]]), axis=1)

    def deviations(self, logarithms: Floats, chosen: NDArray[np.intp]) -> Floats:
        """Return the standard deviation of each error."""
        return np.asarray(np.sqrt(self.features(logarithms, chosen) @ np.exp(2.0 * logarithms)))

    def fitted(self, chosen: NDArray[np.intp], start: Floats | None = None) -> Floats:
        """Return the logarithms of the spreads that make the chosen errors most likely."""
        weights, errors = self.weights(chosen), self.errors[chosen]

        def loss(logarithms: Floats) -> tuple[float, Floats]:
            features = self.features(logarithms, chosen)
            squares = np.exp(2.0 * logarithms)
            variance = np.maximum(features @ squares, 1e-8)
            ratio = errors**2 / (FREEDOM * variance)
            moved = (logarithms - self.prior) / PRIOR_SPREAD
            value = np.sum(weights * (0.5 * np.log(variance) + 0.5 * (FREEDOM + 1.0) * np.log1p(ratio)))
            slope = weights * 0.5 / variance * (1.0 - (FREEDOM + 1.0) * ratio / (1.0 + ratio))
            return float(value + 0.5 * moved @ moved), (slope @ features) * 2.0 * squares + moved / PRIOR_SPREAD

        begin = self.prior if start is None else start
        found = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 60})
        return np.asarray(found.x)

    def tails(self, logarithms: Floats, chosen: NDArray[np.intp], share: float) -> tuple[float, float]:
        """Return how many spreads lie between an estimate and the ends of its range, below and above.

        A handful of publishers says little of one side alone: each end lies halfway between the quantile of its own
        side and that of both, and both ends move together until the range holds a share of the errors.
        """
        scores, weights = self.errors[chosen] / self.deviations(logarithms, chosen), self.weights(chosen)
        either = quantile(np.abs(scores), weights, share)
        below = (either - quantile(scores, weights, (1.0 - share) / 2.0)) / 2.0
        above = (either + quantile(scores, weights, (1.0 + share) / 2.0)) / 2.0
        moved = quantile(np.maximum(-scores / below, scores / above), weights, share)
        return moved * below, moved * above

    @cached_property
    def held(self) -> Mapping[str, float]:
        """The share of known errors inside with which ranges hold eight in ten of the groups left out in turn, by kind.

        Of all runs no more than a handful of groups asks for whatever they are like: theirs, and half of a further one.
        """
        found: dict[str, float] = {}
        for kind in self.kinds:
            own = self._of_kind(kind, np.arange(len(self.samples)))
            least, most = HELD if kind == ANY else LEAST, min(HELD * self._further(own), FURTHEST)
            found[kind] = most
            for share in np.linspace(least, most, SHARES):
                low, high = self._ends({**found, kind: float(share)})
                inside = ((low < self.errors) & (self.errors < high))[own]
                if np.average(inside, weights=self.weights(own)) >= HELD:
                    found[kind] = float(share)
                    break
        return found

    def _of_kind(self, kind: str, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those of some places that are of a kind; of any, or where none is, those whose software is named."""
        named = chosen if kind == UNNAMED else chosen[~self._withheld[chosen]]
        own = named if kind == ANY else named[self._kind[named] == kind]
        return next((places for places in (own, named) if len(places)), chosen)

    def _further(self, chosen: NDArray[np.intp]) -> float:
        """Return by how much more a range must hold of some errors' groups to hold as much of one more."""
        count = len({self._keys[place] for place in chosen})
        return (count + FURTHER) / count

    @cached_property
    def _left_out(self) -> Mapping[str, Floats]:
        """Logarithms of the spreads that all other groups make likely; its own where there are no others."""
        start = self.fitted(np.arange(len(self.samples)))
        return {group: self.fitted(self._others(group), start) for group in self.groups}

    def _others(self, group: str) -> NDArray[np.intp]:
        others = self.places(group, own=False)
        return others if len(others) else self.places(group)

    def calibrated(
        self, logarithms: Floats, chosen: NDArray[np.intp], shares: Mapping[str, float]
    ) -> tuple[Floats, Ends]:
        """Return spreads and ends: ends from runs whose software is named, and as much wider where it is withheld.

        A run left out is some way off from all others; one of a further publisher may be like a published run in all
        respects and no surer for it. The base is widened until errors without any distance lie in their ranges too.

        Args:
            logarithms: of the spreads, as fitted to all of them.
            chosen: where the errors stand.
            shares: of them that ranges are to hold, by kind.
        """
        named = self._of_kind(ANY, chosen)
        moved, base = logarithms.copy(), self.parts.index(BASE)
        for factor in WIDER:
            moved[base] = logarithms[base] + np.log(factor)
            of_all = {ANY: self.tails(moved, named, shares[ANY])}
            near = np.sqrt(self._amounts[named] @ np.exp(2.0 * moved[: len(self.parts)]))
            if self._inside(near, named, of_all) >= shares[ANY] / self._further(named):
                break
        of_kinds = (kind for kind in shares if kind != ANY)
        ends = of_all | {kind: self.tails(moved, self._of_kind(kind, chosen), shares[kind]) for kind in of_kinds}
        withheld = chosen[self._withheld[chosen]]
        if UNNAMED not in self.parts or not len(withheld):
            return moved, ends
        unnamed = self.parts.index(UNNAMED)
        for factor in WIDER:
            moved[unnamed] = logarithms[unnamed] + np.log(factor)
            if self._inside(self.deviations(moved, withheld), withheld, ends) >= HELD:
                break
        return moved, ends

    def _sides(self, chosen: NDArray[np.intp], ends: Ends) -> Floats:
        """Return the spreads to both ends of the ranges of some runs, below and above."""
        return np.array([ends.get(kind, ends[ANY]) for kind in self._kind[chosen]]).T

    def _inside(self, deviations: Floats, chosen: NDArray[np.intp], ends: Ends) -> float:
        """Return the share of some errors inside their ranges, the mean over groups."""
        scores, (below, above) = self.errors[chosen] / deviations, self._sides(chosen, ends)
        return float(np.average((scores > -below) & (scores < above), weights=self.weights(chosen)))

    def result(self) -> Fitted:
        """Return the spreads and ends of all errors."""
        every = np.arange(len(self.samples))
        logarithms, ends = self.calibrated(self.fitted(every), every, self.held)
        values = np.exp(logarithms)
        names = len(self.parts)
        return Fitted(
            dict(zip(self.parts, map(float, values[:names]), strict=True)),
            dict(zip(self.distances, map(float, values[names:]), strict=True)),
            ends,
        )

    def unseen(self) -> tuple[Floats, Floats]:
        """Return the ends, as logarithms of measured over estimated, that the others' errors give each sample."""
        return self._ends(self.held)

    def _ends(self, shares: Mapping[str, float]) -> tuple[Floats, Floats]:
        low, high = np.zeros(len(self.samples)), np.zeros(len(self.samples))
        for group in self.groups:
            own = self.places(group)
            logarithms, ends = self.calibrated(self._left_out[group], self._others(group), shares)
            deviations, (below, above) = self.deviations(logarithms, own), self._sides(own, ends)
            low[own], high[own] = -below * deviations, above * deviations
        return low, high


def quantile(values: Floats, weights: Floats, share: float) -> float:
    """Return a quantile of weighted values, at least on its own side of nothing."""
    order = np.argsort(values)
    reached = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    return float(np.interp(share, reached, values[order]))
