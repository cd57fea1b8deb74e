"""When a classical algorithm stops being reasonable, and what to use then; all from its own formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate.classical.algorithms import fit_bytes, fit_of, fit_seconds
from capacity_tui.engine.estimate.classical.rates import Rates
from capacity_tui.engine.estimate.work import Note
from capacity_tui.engine.models.classical import ClassicalSpec, LinearRegressionNormal
from capacity_tui.engine.units import format_bytes, format_count, format_number, format_seconds

# Significant digits of the types, and the halvings that find a number of rows to a hundredth.
MACHINE_EPSILON = {"fp32": 2.0**-24, "fp64": 2.0**-53}
HALVINGS = 60


def fit_warnings(spec: ClassicalSpec, rates: Rates, cluster: Cluster) -> tuple[Note, ...]:
    """Return what a user should know before starting a fit."""
    return (*_limits(spec, rates, cluster), *_conditioning(spec), *_idle(spec, rates, cluster))


def largest_rows(spec: ClassicalSpec, within: Callable[[ClassicalSpec], bool]) -> int:
    """Return the most rows for which a condition still holds, everything else equal; 0 where none does."""
    low, high = 0.0, float(spec.n)
    for _ in range(HALVINGS):
        middle = np.floor((low + high) / 2.0)
        if middle <= low:
            break
        low, high = (middle, high) if within(spec.model_copy(update={"n": int(middle)})) else (low, middle)
    return int(low)


def _limits(spec: ClassicalSpec, rates: Rates, cluster: Cluster) -> Iterator[Note]:
    row, fit = rates.row, fit_of(spec, rates)
    seconds, held = float(fit_seconds(fit, rates)), float(fit_bytes(fit))
    instead = f" Use instead: {row.instead}." if row.instead else ""
    if seconds > row.reasonable_seconds:
        limit = row.reasonable_seconds
        rows = largest_rows(spec, lambda trial: float(fit_seconds(fit_of(trial, rates), rates)) <= limit)
        detail = (
            f"{row.complexity}: {format_number(spec.n)} rows take about {format_seconds(seconds)}; up to about "
            f"{format_count(rows)} rows stay below {format_seconds(limit)}.{instead}"
        )
        yield Note("scales_badly", f"{row.name} is slow at {format_count(float(spec.n))} rows", detail)
    capacity = cluster.device.memory_bytes
    if capacity is not None and held > float(np.max(capacity)):
        room = float(np.max(capacity))
        rows = largest_rows(spec, lambda trial: float(fit_bytes(fit_of(trial, rates))) <= room)
        detail = (
            f"{format_bytes(held)} at the peak, {fit.peak}; memory holds {format_bytes(room)}, enough for about "
            f"{format_count(rows)} rows.{instead}"
        )
        yield Note("too_large", f"{row.name} does not fit into memory", detail)


def _conditioning(spec: ClassicalSpec) -> Iterator[Note]:
    """The Gram matrix has the squared condition number of the data (Higham 2002, chapter 20)."""
    if not isinstance(spec, LinearRegressionNormal):
        return
    epsilon = MACHINE_EPSILON[str(spec.precision)]
    limit = epsilon**-0.5
    if spec.p > spec.n:
        detail = (
            f"{format_number(spec.p)} features against {format_number(spec.n)} rows: add a penalty, or reduce features."
        )
        yield Note("singular", "The Gram matrix is singular", detail)
    if spec.condition is not None and spec.condition * limit**-1 > 0.1:
        digits = max(0.0, -np.log10(epsilon * spec.condition**2))
        detail = (
            f"About {digits:.0f} digits of the result are left in {spec.precision} at a condition number of "
            f"{spec.condition:.3g}; none from {limit:.2g} on. linear_regression_qr keeps "
            f"{max(0.0, -np.log10(epsilon * spec.condition)):.0f}."
        )
        yield Note("ill_conditioned", "The normal equations square the condition number", detail)
    elif spec.condition is None and spec.precision == "fp32":
        detail = (
            f"In fp32 nothing is left of the result from a condition number of {limit:,.0f} on; use fp64 or "
            "linear_regression_qr."
        )
        yield Note("ill_conditioned", "The normal equations square the condition number", detail)


def _idle(spec: ClassicalSpec, rates: Rates, cluster: Cluster) -> Iterator[Note]:
    if float(np.max(cluster.devices)) > 1:
        detail = (
            f"A fit runs on one of {format_number(float(np.max(cluster.devices)))} devices; the others wait and cost."
        )
        yield Note("one_device", "One device does the work", detail)
    if rates.row.single_threaded and cluster.device.kind == "cpu" and float(spec.n_jobs or 1) > 1:
        detail = f"{rates.row.library} runs on one core, whatever n_jobs says."
        yield Note("one_core", "One core does the work", detail)
