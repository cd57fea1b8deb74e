"""Ranges of eight in ten, and published runs as constants and ranges from all other publishers predict them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.runs.accuracy.predictions import answered
from capacity_tui.engine.runs.accuracy.published import Measurement
from capacity_tui.engine.uncertainty.user_runs import Bin
from tools.calibrate.constants import spread_priors
from tools.calibrate.fitting import Fit, Floats
from tools.calibrate.runs import Run, figure_name, sign_of
from tools.calibrate.spreads import Errors, Fitted, Sample


@dataclass(frozen=True, slots=True)
class UnseenRun:
    """A run as constants and ranges from all other publishers predict it, in the unit of its measurement."""

    run: Run
    estimated: float  # by constants fitted to it as well
    value: float  # by the others' constants
    low: float  # end of its range by the others' errors
    high: float  # the other end
    withheld: bool = False  # whether the estimate was not told the software
    # by constants without the runs of its software's family and of its hardware's generation
    apart: tuple[float, float] | None = None

    @property
    def inside(self) -> bool:
        """Whether the measurement lies in the range."""
        return self.low <= self.run.measured <= self.high


@dataclass(frozen=True, slots=True)
class Judged:
    """Residuals of runs with their publishers left out, and with further groups left out."""

    fit: Fit[Run]  # with publishers left out
    # residuals without the family of their software, and without the generation of their hardware
    apart: tuple[Floats, Floats] | None = None
    withheld: bool = False  # whether the software's name was


def samples_of(judged: Sequence[Judged]) -> Mapping[str, list[tuple[Judged, int, Sample]]]:
    """Return the errors of runs, and where the runs stand, by row of reliability.yaml."""
    found: dict[str, list[tuple[Judged, int, Sample]]] = {}
    for each in judged:
        problem = each.fit.problem
        for place, run in enumerate(problem.runs):
            row, sample = sample_of(run.measurement, each.fit.unseen[place], problem.catalog, withheld=each.withheld)
            found.setdefault(row, []).append((each, place, sample))
    return found


def sample_of(measurement: Measurement, unseen: float, catalog: Catalog, *, withheld: bool) -> tuple[str, Sample]:
    """Return the row of reliability.yaml of a run's figure, with its error and what its spread may depend on.

    Args:
        measurement: what was measured.
        unseen: ln(estimated / measured) with its publisher left out, in the unit of the measurement.
        catalog: facts.
        withheld: whether the plan does not name its software.
    """
    estimate = answered(measurement, catalog).estimate
    if estimate.ranges is None:
        raise ValueError(f"{measurement.id} has no range")
    figure = figure_name(estimate, measurement.quantity)
    error_terms = estimate.ranges.error_terms(figure)
    amounts = {name: float(amount) for name, amount in error_terms.amounts.items()}
    error = -unseen * sign_of(measurement.quantity)
    least = estimate.ranges.least(measurement.quantity.removesuffix("_bytes")) if figure == "memory" else None
    sample = Sample(
        measurement.source_key, error, amounts, error_terms.features, withheld, kind=error_terms.kind, least=least
    )
    return estimate.work.evidence.rows[figure].id, sample


@dataclass(frozen=True)
class RangesOfFigure:
    """The errors of one kind of figure, and the runs they are of."""

    row: str  # its row of reliability.yaml
    places: Sequence[tuple[Judged, int]]  # the runs
    errors: Errors  # their errors, in the same order
    fitted: Fitted  # spreads made from all of them

    @property
    def cells(self) -> tuple[Bin, ...]:
        """What was published of it."""
        return self.errors.cells

    @cached_property
    def unseen(self) -> tuple[UnseenRun, ...]:
        """Every run as the others predict it."""
        return tuple(self._unseen())

    def _unseen(self) -> Iterator[UnseenRun]:
        low, high = self.errors.unseen()
        for index, (judged, place) in enumerate(self.places):
            run = judged.fit.problem.runs[place]
            measured, sign = run.measured, sign_of(run.measurement.quantity)
            value = measured * np.exp(judged.fit.unseen[place])
            row = judged.fit.problem.catalog.reliabilities[self.row]
            floor, bound = self.errors.samples[index].least or (np.inf, 0.0), row.most or (0.0, np.inf)
            ends = sorted(
                (
                    value * max(min(np.exp(low[index]), floor[0]), bound[0]) ** sign,
                    value * min(max(np.exp(high[index]), floor[1]), bound[1]) ** sign,
                )
            )
            apart = judged.apart
            yield UnseenRun(
                run,
                float(measured * np.exp(judged.fit.errors.residuals[place])),
                float(value),
                float(ends[0]),
                float(ends[1]),
                judged.withheld,
                None
                if apart is None
                else (float(measured * np.exp(apart[0][place])), float(measured * np.exp(apart[1][place]))),
            )


def ranges_of(judged: Sequence[Judged]) -> Iterator[RangesOfFigure]:
    """Yield the ranges of each kind of figure among some runs."""
    for row, found in samples_of(judged).items():
        samples = [sample for _, _, sample in found]
        if len({sample.publisher for sample in samples}) == 1:
            # One publisher tells nothing of the next: its kinds of hardware stand in.
            samples = [replace(sample, group=sample.features.words.get("hardware", "")) for sample in samples]
        errors = Errors(samples, spread_priors()[row])
        yield RangesOfFigure(row, [(each, place) for each, place, _ in found], errors, errors.result())


@dataclass(frozen=True, slots=True)
class Held:
    """How well ranges hold: shares of runs inside, and how wide they are."""

    runs: int  # how many
    publishers: int  # how many
    of_runs: float  # share of the runs inside
    of_publishers: float  # the mean over publishers of each one's share
    width: float  # median of high over low


def coverage(runs: Sequence[UnseenRun]) -> Held:
    """Return how well the ranges of some runs hold."""
    by_publisher: dict[str, list[bool]] = {}
    for each in runs:
        by_publisher.setdefault(each.run.publisher, []).append(each.inside)
    shares = [float(np.mean(inside)) for inside in by_publisher.values()]
    inside = float(np.mean([each.inside for each in runs]))
    width = float(np.median([each.high / each.low for each in runs]))
    return Held(len(runs), len(shares), inside, float(np.mean(shares)), width)
