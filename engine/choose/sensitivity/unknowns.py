"""What of a figure nobody knows exactly, each thing moved alone from one end of its spread to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from capacity_tui.engine.catalog import Table
from capacity_tui.engine.catalog.rows import Row
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.sensitivity.swing import Swing, swing_of
from capacity_tui.engine.cluster import HOUR, price_ends
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import (
    METRICS,
    MORE,
    WITHOUT_RANGE,
    Assembled,
    Figured,
    estimate_resolved,
    figure,
    part_label,
    resolve_plan,
)
from capacity_tui.engine.estimate.timing import StepTime
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.uncertainty import (
    Evidence,
    FigureName,
    Interval,
    Range,
    published_cells,
    range_from,
    spread_of,
)

PRICE = Key.PRICING_USD_PER_HOUR
INTERRUPTIONS = "pricing.spot.interruptions"
ASSUMED = "assumptions."
FIGURES: Mapping[FigureName, str] = {"step": "time", "prefill": "prefill", "decode": "decode", "memory": "memory"}
"""What has spreads of its own, and what that is called."""
RATIO = "x"
UNLIKE = "unlike."
_ANY = Range(0.5, 2.0)
_WORDS = {
    "base": "what no part explains",
    "kernels": "rates of matrix products and attention",
    "attention": "attention over long sequences",
    "outside": "driver context and allocator reserve",
    "activations": "activations and buffers",
    "unnamed": "software without a name",
    "adapted": "a frozen base under an adapter",
    "offloaded": "states on the host",
    "mixture": "experts",
    "known": "constants of the algorithm",
    "overhead": "launches and other overhead",
    "optimizer": "the optimizer's step",
    "pipeline_bubble": "idle pipeline stages",
}
"""What brings spread in, by the names of ``profiles/reliability.yaml``."""


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
        for part, own in _parts(case, name):
            low, high = range_ends(with_evidence(case, _evidence(case, name, own)), of) or certain
            ratios = (float(own.high), float(own.low)) if is_rate else (float(own.low), float(own.high))
            # What remains of a range without any spread, such as interruptions, is no part's.
            figures = (value * low / certain[0], value * high / certain[1])
            tried = tuple(zip(ratios, figures, strict=True))
            swing = swing_of("unknown", f"{name}.{part}", f"{label}: {_words(part)}", 1.0, tried, RATIO)
            if swing is not None:
                yield swing


def _parts(case: EstimatedPlan, name: FigureName) -> Iterator[tuple[str, Range]]:
    """Yield what brings spread into a time or into memory, each with the range it would have alone."""
    evidence = case.estimate.work.evidence
    if name in evidence.known:
        yield "known", evidence.known[name]
    elif name in evidence.rows and (ranges := case.estimate.ranges) is not None:
        row = evidence.rows[name]
        spread = spread_of(ranges.doubts(name), row, published_cells(row.id))
        for part, variance in spread.parts.items():
            yield part, range_from(np.sqrt(variance), row)
        for difference, variance in spread.nearest.squares.items():
            yield f"{UNLIKE}{difference}", range_from(np.sqrt(variance), row)


def _evidence(case: EstimatedPlan, name: FigureName | None = None, own: Range = WITHOUT_RANGE) -> Evidence:
    """Return evidence of a range for one thing, and of none for all others."""
    known = dict.fromkeys(FIGURES, WITHOUT_RANGE)
    return Evidence(case.estimate.work.evidence.rows, known=known if name is None else {**known, name: own})


def range_ends(figures: Figured, key: str) -> tuple[float, float] | None:
    """Return the ends of a figure's range; None where it has none."""
    value = METRICS[key].read(figures) if key in METRICS else None
    return (mean(value.low), mean(value.high)) if isinstance(value, Interval) else None


def _words(part: str) -> str:
    if part.startswith(UNLIKE):
        return f"{part.removeprefix(UNLIKE)} unlike published runs"
    return _WORDS.get(part) or f"{part_label(part)} traffic"


def _interruptions(case: EstimatedPlan, of: str) -> Iterator[Swing]:
    """Yield how often spot capacity is taken back, where that is all that is left of a range without spreads."""
    risk = case.resolved.cluster.price.interruptions
    ends = range_ends(with_evidence(case, _evidence(case)), of)
    if risk is not None and ends is not None:
        hours = risk.seconds_between / HOUR
        tried = tuple(zip((hours * risk.spread, hours / risk.spread), ends, strict=True))
        swing = swing_of("unknown", INTERRUPTIONS, "hours between interruptions of spot capacity", hours, tried, "h")
        if swing is not None:
            yield swing


def _price(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield what an hour of the devices costs, between the lowest and the highest offer."""
    ends = price_ends(case.resolved.cluster, case.plan.pricing, case.catalog)
    now = case.resolved.cluster.price.rate
    if ends is None or not of.startswith("cost."):
        return
    trials = ((usd, case.pinned.evaluate({PRICE: usd})) for usd in ends)
    tried = ((usd, trial.number(of)) for usd, trial in trials)
    swing = swing_of("unknown", PRICE, "price: other offers of these devices", now, ((now, value), *tried), "USD/h")
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
        tried: list[tuple[object, float | None]] = [(row.value, value)]
        for end in (row.low, row.high):
            other = cast("Table[Row]", rows.with_rows({row_id: row.model_copy(update={"value": end})}))
            catalog = case.catalog.with_tables({"assumptions": other})
            try:
                resolved = resolve_plan(case.plan, catalog, case.machine)
                tried.append((end, figure(estimate_resolved(resolved, catalog), of).number))
            except CapacityError:
                continue
        swing = swing_of("unknown", f"{ASSUMED}{row_id}", row.name, row.value, tried, row.unit)
        if swing is not None:
            yield swing
