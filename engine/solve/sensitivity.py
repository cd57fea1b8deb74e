"""What moves a figure of a plan most, what of it nobody knows exactly, and what to measure next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from capacity_tui.engine.catalog import Catalog, Table, load_catalog
from capacity_tui.engine.catalog.rows import Row
from capacity_tui.engine.cluster import HOUR, price_ends
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import (
    METRICS,
    MORE,
    Assembled,
    Estimate,
    Figured,
    FigureValue,
    estimate_resolved,
    figure,
    figure_keys,
    open_length,
    part_label,
    resolve_plan,
    with_further_run,
)
from capacity_tui.engine.estimate.timing import StepTime
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import FitError
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass, record_of_data
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.modes.modes import fill
from capacity_tui.engine.solve.steps import Swing, knob_swings, swing_of
from capacity_tui.engine.uncertainty import (
    UNKNOWN,
    Evidence,
    FigureName,
    Interval,
    Range,
    figure_spread,
    published_bins,
    range_from,
    spread_words,
    spreads_here,
)

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

PRICE = Key.PRICING_USD_PER_HOUR
INTERRUPTIONS = f"{Key.PRICING_SPOT}.interruptions"
ASSUMED = "assumptions."
FIGURES: Mapping[FigureName, str] = {"step": "time", "prefill": "prefill", "decode": "decode", "memory": "memory"}
"""What has spreads of its own, and what that is called."""

RATIO = "x"
UNLIKE = "unlike."
_ANY = Range(0.5, 2.0)

_ROUNDING = 1e-9  # what sums of squared logarithms leave


def unknown_swings(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield what nobody knows exactly and moves a figure."""
    yield from _spreads(case, of, value)
    yield from _interruptions(case, of)
    yield from _price(case, of, value)
    yield from _assumptions(case, of, value)


def with_evidence(case: EstimatedPlan, evidence: Evidence) -> Figured:
    """Return the plan's figures as if their ranges rested on something else."""
    work, computation = replace(case.estimate.work, evidence=evidence), case.estimate.computation
    time = StepTime(computation.step_seconds.value, computation.parts, computation.phases)
    return Assembled(work, case.resolved.cluster, case.plan.pricing, computation.iteration, time)


def _spreads(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield the parts of a figure's spread, each as wide as it would be alone."""
    certain = range_ends(with_evidence(case, _evidence(case)), of)
    if certain is None:
        return
    # A rate is lowest where its time is longest.
    is_rate = METRICS[of].better == MORE
    for name, label in FIGURES.items():
        if range_ends(with_evidence(case, _evidence(case, name, _ANY)), of) == certain:
            continue
        for part, alone in _parts(case, name, of):
            low, high = range_ends(with_evidence(case, _evidence(case, name, alone)), of) or certain
            ratios = (float(alone.high), float(alone.low)) if is_rate else (float(alone.low), float(alone.high))
            # What remains of a range without any spread, such as interruptions, is no part's.
            figures = (value * low / certain[0], value * high / certain[1])
            values = tuple(zip(ratios, figures, strict=True))
            swing = swing_of("unknown", f"{name}.{part}", f"{label}: {_words(part)}", 1.0, values, RATIO)
            if swing is not None:
                yield swing


def _parts(case: EstimatedPlan, name: FigureName, of: str) -> Iterator[tuple[str, Range]]:
    """Yield what brings spread into a time or into memory, each with the range it would have alone."""
    evidence = case.estimate.work.evidence
    if name in evidence.known:
        yield "known", evidence.known[name]
    elif name in evidence.rows and (ranges := case.estimate.ranges) is not None:
        row = evidence.rows[name]
        terms = ranges.error_terms(name)
        spread = figure_spread(terms, row, published_bins(row.id))
        every = {**spread.parts, **{f"{UNLIKE}{name}": square for name, square in spread.nearest.squares.items()}}
        parts = {part: range_from(np.sqrt(square), row, terms.kind) for part, square in every.items()}
        yield from parts.items()
        # What an older release or a first sight adds to the spreads, so that all together reach as far as the range.
        whole, last = (ranges.of(of), "count") if name == "memory" else (ranges[name], "release")
        below, above = zip(*((alone.low, alone.high) for alone in parts.values()), strict=True)
        yield last, Range(1.0 / _left(whole.low, below), _left(whole.high, above))


def _left(end: Number, others: Sequence[Number]) -> float:
    """Return the ratio, of at least 1, that takes independent others as far as an end."""
    beyond = math.log(mean(end)) ** 2 - sum(math.log(mean(other)) ** 2 for other in others)
    return math.exp(math.sqrt(beyond)) if beyond > _ROUNDING else 1.0


_WITHOUT = Range(1.0, 1.0)


def _evidence(case: EstimatedPlan, name: FigureName | None = None, own: Range = _WITHOUT) -> Evidence:
    """Return evidence of a range for one thing, and of none for all others."""
    known = dict.fromkeys(FIGURES, _WITHOUT)
    return Evidence(case.estimate.work.evidence.rows, known=known if name is None else {**known, name: own})


def range_ends(figures: Figured, key: str) -> tuple[float, float] | None:
    """Return the ends of a figure's range; None where it has none."""
    value = METRICS[key].read(figures) if key in METRICS else None
    return (mean(value.low), mean(value.high)) if isinstance(value, Interval) else None


def _words(part: str) -> str:
    if part.startswith(UNLIKE):
        return f"{part.removeprefix(UNLIKE)} unlike published runs"
    return spread_words()["unknowns"].get(part) or f"{part_label(part)} traffic"


def _interruptions(case: EstimatedPlan, of: str) -> Iterator[Swing]:
    """Yield how often spot capacity is taken back, where that is all that is left of a range without spreads."""
    risk = case.resolved.cluster.price.interruptions
    ends = range_ends(with_evidence(case, _evidence(case)), of)
    if risk is not None and ends is not None:
        hours = risk.seconds_between / HOUR
        values = tuple(zip((hours * risk.spread, hours / risk.spread), ends, strict=True))
        swing = swing_of("unknown", INTERRUPTIONS, "hours between interruptions of spot capacity", hours, values, "h")
        if swing is not None:
            yield swing


def _price(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield what an hour of the devices costs, between the lowest and the highest offer."""
    ends = price_ends(case.resolved.cluster, case.plan.pricing, case.catalog)
    now = case.resolved.cluster.price.rate
    if ends is None or not of.startswith("cost."):
        return
    trials = ((usd, case.pinned.evaluate({PRICE: usd})) for usd in ends)
    offers = ((usd, trial.number(of)) for usd, trial in trials)
    swing = swing_of("unknown", PRICE, "price: other offers of these devices", now, ((now, value), *offers), "USD/h")
    if swing is not None:
        yield swing


def _assumptions(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield what is assumed of the hardware, where it is known what such hardware has at least and at most."""
    if not any(known.origin == "assumed" for known in case.resolved.cluster.figures().values()):
        return
    rows = case.catalog.assumptions
    for row_id, row in rows.items():
        if row.low is None or row.high is None:
            continue
        values: list[tuple[object, float | None]] = [(row.value, value)]
        for end in (row.low, row.high):
            other = cast("Table[Row]", rows.with_rows({row_id: row.model_copy(update={"value": end})}))
            catalog = case.catalog.with_tables({"assumptions": other})
            try:
                resolved = resolve_plan(case.plan, catalog, case.machine)
                values.append((end, figure(estimate_resolved(resolved, catalog), of).number))
            except CapacityError:
                continue
        swing = swing_of("unknown", f"{ASSUMED}{row_id}", row.name, row.value, values, row.unit)
        if swing is not None:
            yield swing


_LEAST = 0.005  # A range that is narrower by less than this share is as wide as before


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something that can be measured."""

    kind: str  # ``run``, ``memory``, ``kernels``, ``collectives``, ``benchmark`` or ``price``
    what: str
    command: str  # the command line that takes it; ``PLAN`` stands for the plan's file
    samples: tuple[str, ...] = ()  # what fits it would leave at best, by name; none for what is no sample of the device
    figure: FigureName | None = None  # what a run of the plan tells; None for what is no run
    settles: tuple[str, ...] = ()  # beginnings of the keys of unknowns that it settles


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a measurement would do to the range of a figure."""

    measurement: Measurement
    # low, high: the range as it is, with all that is unknown
    low: float
    high: float
    # narrowed_low, narrowed_high: the range with it, at best
    narrowed_low: float
    narrowed_high: float

    @property
    def share(self) -> float:
        """By which share of its width the range narrows."""
        return 1.0 - (self.narrowed_high - self.narrowed_low) / (self.high - self.low)


def measure_next(case: EstimatedPlan, of: str, value: float, unknowns: Sequence[Swing]) -> Narrowing | None:
    """Return the measurement that narrows the range of a figure most; None where none does."""
    useful = [narrowing for narrowing in _narrowings(case, of, value, unknowns) if narrowing.share > _LEAST]
    return max(useful, key=lambda narrowing: narrowing.share, default=None)


def _narrowings(case: EstimatedPlan, of: str, value: float, unknowns: Sequence[Swing]) -> Iterator[Narrowing]:
    """Yield what each measurement would do: unknowns that are not of the spread widen the range as independent ones."""
    facts = [unknown for unknown in unknowns if unknown.key.startswith((ASSUMED, PRICE))]
    spread = range_ends(case.estimate, of) or (value, value)
    low, high = _together(value, spread, facts)
    for kind, row in spread_words()["measurements"].items():
        measurement = record_of_data(Measurement, {"kind": kind, **row})
        if measurement.kind == "collectives" and float(case.resolved.cluster.devices) <= 1:
            continue
        left = spread
        if measurement.samples or measurement.figure:
            left = range_ends(_measured(case, measurement), of) or spread
        unsettled = [fact for fact in facts if not (measurement.settles and fact.key.startswith(measurement.settles))]
        ends = _together(value, left, unsettled)
        if high > low:
            yield Narrowing(measurement, low, high, *ends)


def _measured(case: EstimatedPlan, measurement: Measurement) -> Figured:
    """Return the estimate as if the device had been measured, and what was found left no error."""
    evidence = case.estimate.work.evidence
    if not evidence.features.words:
        return case.estimate  # nothing that is measured of a device narrows ranges of this kind of model
    if measurement.figure is not None:
        own = with_further_run(case.estimate, case.resolved, measurement.figure, case.catalog)
        return with_evidence(case, replace(evidence, own=own))
    here = spreads_here([FitError(name, 1, 0.0, 0.0) for name in measurement.samples])
    words = {name: UNKNOWN if name == "hardware" else word for name, word in evidence.features.words.items()}
    known = replace(evidence, features=replace(evidence.features, words=words), here={**evidence.here, **here})
    return with_evidence(case, known)


def _together(value: float, spread: tuple[float, float], facts: Sequence[Swing]) -> tuple[float, float]:
    """Return the range of a figure whose spread and some facts vary independently of each other."""
    below = [spread[0], *(min(fact.low, value) for fact in facts)]
    above = [spread[1], *(max(fact.high, value) for fact in facts)]
    down = math.sqrt(sum(math.log(value / end) ** 2 for end in below if end > 0))
    up = math.sqrt(sum(math.log(end / value) ** 2 for end in above))
    return value * math.exp(-down), value * math.exp(up)


@dataclass(frozen=True, slots=True)
class Sensitivity(ShownInNotebooks):
    """What moves a figure."""

    figure: FigureValue  # the figure as the plan stands, with its range
    swings: tuple[Swing, ...]  # what moves it, the most first
    # what would narrow its range most; None where nothing that this program measures does
    measure_next: Narrowing | None

    @property
    def value(self) -> float:
        """The figure as the plan stands."""
        return self.figure.number or 0.0


def sensitivity(plan: Plan, of: str, machine: Machine | None = None, catalog: Catalog | None = None) -> Sensitivity:
    """Return what moves a figure of a plan most, one thing at a time, and what would make it surer.

    Args:
        plan: the plan; fields that are ``auto`` get the balanced mode's values, and stay at them.
        of: result key of the figure, or a short word for it such as ``time``.

    Raises:
        CapacityError: no figure is called that, this plan has no such figure, or it cannot be estimated.
    """
    facts = catalog or load_catalog()
    filled = fill(plan, "balanced", machine, facts)
    case = EstimatedPlan.of(plan, filled, machine)
    value = _figure(case.estimate, of, str(case.plan.task))
    key = value.metric.key
    if value.number is None:
        raise PlanError(f"this plan has no {value.metric.label}", value.absence, "ask for another figure")
    unknowns = tuple(unknown_swings(case, key, value.number))
    swings = sorted((*knob_swings(case, key, value.number), *unknowns), key=lambda swing: swing.swing, reverse=True)
    return Sensitivity(value, tuple(swings), measure_next(case, key, value.number, unknowns))


def _figure(estimate: Estimate, of: str, task: str) -> FigureValue:
    """Return the first figure that a name may mean and the plan has; what a word means for any length is one."""
    keys = figure_keys(of, task)
    if of not in keys:
        keys = (*keys, *map(open_length, keys))
    figures = [figure(estimate, key) for key in keys]
    return next((value for value in figures if value.number is not None), figures[0])
