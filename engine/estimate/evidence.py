"""What the ranges of a plan's figures rest on: which published runs there are of its kind, and what it is like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.resolve import MIXTURE, ResolvedPlan, kind_of_run, run_like, user_runs_of
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.estimate.run import RunLayout
from capacity_tui.engine.estimate.work import Work
from capacity_tui.engine.machine import MeasuredRun
from capacity_tui.engine.numeric import Number, present, where
from capacity_tui.engine.plan import UNNAMED, Plan
from capacity_tui.engine.uncertainty import (
    KERNELS,
    UNKNOWN,
    WORDS,
    Evidence,
    FigureName,
    RunFeatures,
    UserRuns,
    figure_spread,
    measured_networks,
    published_bins,
    sampled_in,
    spreads_here,
)

# A high percentile that has no row of its own has the spreads of its mean, and one of its own beside them.
OF_TAILS = "-tail"
SHARDED = 3  # Stage of ZeRO that shares the parameters out as well


def evidence_of(resolved: ResolvedPlan, work: Work, catalog: Catalog) -> Evidence:
    """Return what the ranges of a plan's figures rest on."""
    evidence = evidence_before(resolved, catalog)
    return with_numbers(evidence, work, resolved.cluster.devices) if evidence.features.words else evidence


def evidence_before(resolved: ResolvedPlan, catalog: Catalog) -> Evidence:
    """Return what the ranges of a plan's figures rest on, but for the numbers that its work tells."""
    kind = resolved.family.kind
    if kind == "classical":
        from capacity_tui.engine.estimate.classical.work import step_range  # noqa: PLC0415 - of its kind alone

        algorithm = catalog.algorithms[resolved.family.id]
        return Evidence(_rows(catalog, "fit"), known={"step": step_range(algorithm, resolved.spec)})
    if kind == "plugin":
        return Evidence(_rows(catalog, "plugin"))
    device = resolved.cluster.device
    like = run_like(resolved.plan, resolved.family, resolved.shape, device, catalog)
    rows = _rows(catalog, kind_of_run(resolved.plan, resolved.shape))
    words = {name: word for name, word in like.words.items() if name in WORDS}
    errors = device.efficiency.errors
    if not resolved.plan.is_inference:
        errors = sampled_in(errors, device.native(str(resolved.plan.training.precision)))
    words["hardware"] = UNKNOWN if any(error.name.startswith(KERNELS) for error in errors) else device.efficiency.row
    unnamed = float(words["software"] == UNNAMED)
    flags: dict[str, Number] = {
        "unnamed": unnamed,
        "adapted": float(not resolved.plan.is_inference and resolved.plan.training.adapter is not None),
        "offloaded": float(resolved.plan.parallelism.offload in {"optimizer", "parameters"}) * device.has_own_memory,
        "emulated": float(
            device.conversion_share(str(resolved.plan.training.precision)) < 1.0 and not resolved.plan.is_inference
        ),
        "encoder": float(resolved.shape is not None and resolved.shape.is_encoder and not resolved.plan.is_inference),
        MIXTURE: 0.0 if resolved.shape is None else present(resolved.shape.experts),
    }
    if unnamed:
        words["software"] = UNKNOWN
    features = RunFeatures(words, _splits(resolved.plan))
    runs = device.efficiency.runs
    networks = measured_networks(resolved.cluster.networks, resolved.cluster.direct_devices)
    least_rate, least_because = _least_rate(resolved, catalog)
    return Evidence(
        rows,
        features,
        flags,
        spreads_here(errors),
        own=(user_runs_of(runs, catalog), like, _usual_context_bytes(device)) if runs else None,
        networks=networks,
        least_rate=least_rate,
        least_because=least_because,
        kind="encoder" if flags["encoder"] and resolved.plan.is_finetuning else str(resolved.plan.task),
    )


def _least_rate(resolved: ResolvedPlan, catalog: Catalog) -> tuple[float, str]:
    """Return the rate of the slowest runs of a plan over the estimated one, and what slows them.

    Older releases, where it serves with an engine whose release it does not name; what a training on sound does beside
    its steps, where it trains on that.
    """
    if resolved.shape is None:
        return 1.0, ""
    if resolved.plan.is_inference:
        name = resolved.plan.inference.engine
        oldest = 1.0 if catalog.names_release(name) else min(row.oldest_rate for row in catalog.engine_rows(name))
        return oldest, "the release is not given: older ones"
    if resolved.shape.source_positions:
        because = "sound is decoded by processors, and evaluations write transcripts: runs with both"
        return float(catalog.coefficients["sound-training-rate"].value), because
    return 1.0, ""


def _rows(catalog: Catalog, kind: str) -> Mapping[FigureName, Reliability]:
    names: tuple[FigureName, ...] = get_args(FigureName)
    every, rows = catalog.reliabilities, dict[FigureName, str]()
    for name in names:
        own = f"{kind}-{name}"
        rows[name] = own if own in every else own.removesuffix(OF_TAILS)
    return {name: every[row] for name, row in rows.items() if row in every}


def run_splits(layout: RunLayout) -> dict[str, Number]:
    """Return in which ways the devices of a run, or of several as arrays, share its work: 1 or 0 for each."""
    sizes = {"tp": layout.tp, "pp": layout.pp, "cp": layout.cp, "ep": layout.ep}
    shared: dict[str, Number] = {name: where(np.not_equal(size, 1.0), 1.0, 0.0) for name, size in sizes.items()}
    return {**shared, "zero": where(np.equal(layout.zero, SHARDED), 1.0, 0.0)}


def _splits(plan: Plan) -> dict[str, Number]:
    parallel = plan.parallelism
    return run_splits(
        RunLayout(
            tp=float(parallel.tp or 1),
            pp=float(parallel.pp or 1),
            cp=float(parallel.cp),
            ep=float(parallel.ep),
            zero=float(parallel.zero or 0),
        )
    )


def with_numbers(
    evidence: Evidence, work: Work, devices: Number, splits: Mapping[str, Number] | None = None
) -> Evidence:
    """Return evidence with what the work tells, or several as arrays; ``splits`` are by default the plan's own."""
    numbers = {"length": work.units_per_sample, "devices": devices, "parameters": work.facts.parameters}
    if work.served is not None:
        numbers["batch"] = work.served.batch
    features = replace(evidence.features, numbers=numbers, splits={**evidence.features.splits, **(splits or {})})
    return replace(evidence, features=features)


def with_further_run(
    estimate: Estimate, resolved: ResolvedPlan, figure: FigureName, catalog: Catalog
) -> tuple[UserRuns, RunFeatures, float]:
    """Return the runs of the user's own with one more that tells a figure: of this plan, as it is estimated."""
    device = resolved.cluster.device
    like = run_like(resolved.plan, resolved.family, resolved.shape, device, catalog)
    own, usual = user_runs_of(device.efficiency.runs, catalog), _usual_context_bytes(device)
    speed, context = own.speed(like.words, like.numbers), own.context_bytes(like.words, like.numbers, usual)
    learnt = {"speed": speed} if figure == "step" else {"peak_bytes": context}
    numbers = {name: float(number) for name, number in like.numbers.items()}
    run = MeasuredRun("", like.words, numbers, **learnt, unsure=unsure_of(estimate))
    return user_runs_of((*device.efficiency.runs, run), catalog), like, usual


def unsure_of(estimate: Estimate) -> dict[str, dict[str, float]]:
    """Return what makes time and memory of an estimate unsure without runs of the user's own, part by part."""
    rows, ranges = estimate.work.evidence.rows, estimate.ranges
    if ranges is None:
        return {}
    figures: tuple[FigureName, ...] = ("step", "memory")
    spreads = {
        figure: figure_spread(
            replace(ranges.error_terms(figure), own=None), rows[figure], published_bins(rows[figure].id)
        )
        for figure in figures
        if figure in rows and figure not in estimate.work.evidence.known
    }
    return {
        figure: {part: float(deviation) for part, deviation in spread.deviations.items()}
        for figure, spread in spreads.items()
    }


def _usual_context_bytes(device: Device) -> float:
    """Return the memory outside the allocator without runs of the user's own."""
    return float((device.efficiency.plain or device.efficiency).context_bytes)
