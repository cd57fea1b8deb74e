"""Runs the user timed: what they say about the machine beyond single kernels."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster.cluster import Device
from capacity_tui.engine.cluster.measured_here import device_key, with_measured
from capacity_tui.engine.errors import Place, PlanError, StorageError
from capacity_tui.engine.estimate.estimate import estimate_resolved
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.files import make_folder, reading_error, write_atomically
from capacity_tui.engine.machine.machine import Machine
from capacity_tui.engine.machine.measured_constants import FitError, MeasuredEfficiency, constants_file, possible
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.sampling.samples import today

# Constants that all scale when the whole machine is faster or slower than its kernels say.
SPEEDS = ("sustained", "stream", "elementwise")
# A run this many times faster or slower than estimated is another run than its plan says.
LARGEST_FACTOR = 20.0
HALVINGS = 40
RUNS = ".runs.jsonl"


@dataclass(frozen=True, slots=True)
class OwnRun:
    """One run with what was measured.

    Attributes:
        plan: as data of a plan file, with nothing open.
        step_seconds: time of an optimizer step; None where it was not measured.
        peak_bytes: device memory the driver showed (a CPU: the process) at its peak; None likewise.
        date: ISO day.
    """

    plan: Mapping[str, object]
    step_seconds: float | None
    peak_bytes: float | None
    date: str


def own_run(plan: Plan, step_seconds: float | None, peak_bytes: float | None) -> OwnRun:
    """Return a run of today.

    Raises:
        PlanError: nothing was measured.
    """
    if step_seconds is None and peak_bytes is None:
        raise PlanError("nothing was measured", hint="give --step-seconds, --peak-gib or --log")
    return OwnRun(plan.data(), step_seconds, peak_bytes, today())


def resolved_run(plan: Plan, catalog: Catalog, machine: Machine) -> ResolvedPlan:
    """Return a run's plan with its hardware as the catalogue describes it, nothing measured."""
    return resolve_plan(plan, catalog, replace(machine, measured=()))


def fit_runs(
    base: MeasuredEfficiency | None, runs: Sequence[OwnRun], machine: Machine, catalog: Catalog
) -> MeasuredEfficiency:
    """Return constants that meet the user's runs: speed and memory outside the allocator, medians over the runs.

    Args:
        base: what samples gave; None without samples.
        runs: of one device.
        machine: this machine.
        catalog: facts.

    Raises:
        PlanError: a run is so far from its plan that something else must have run.
        HardwareError: the constants that would meet it cannot be.
    """
    cases = [(run, resolved_run(Plan.model_validate(run.plan), catalog, machine)) for run in runs]
    device = cases[0][1].cluster.device
    start = base or MeasuredEfficiency(device_key(device), runs[-1].date, {})
    factors = [_speed_factor(run, resolved, start, catalog) for run, resolved in cases if run.step_seconds]
    found = start if not factors else _faster(start, device, math.exp(median(math.log(each) for each in factors)))
    contexts = [_context(run, resolved, found, catalog) for run, resolved in cases if run.peak_bytes]
    if contexts:
        found = replace(found, constants={**found.constants, "context_bytes": median(contexts)})
    errors = (
        _judged("own runs, step time", cases, found, catalog, _step, lambda run: run.step_seconds),
        _judged("own runs, memory", cases, found, catalog, _reserved, lambda run: run.peak_bytes),
    )
    kept = tuple(error for error in errors if error is not None)
    date = max(start.date, *(run.date for run in runs))
    return possible(replace(found, date=date, errors=(*start.errors, *kept)))


def runs_file(key: str, folder: Path | None = None) -> Path:
    """Return the file of a device's own runs."""
    return constants_file(key, folder).with_suffix(RUNS)


def kept_runs(folder: Path | None = None) -> tuple[OwnRun, ...]:
    """Return the runs kept for all devices, in the order of the devices' names.

    Raises:
        StorageError: a file cannot be read.
    """
    home = runs_file("any", folder).parent
    keys = sorted(path.name.removesuffix(RUNS) for path in home.glob(f"*{RUNS}"))
    return tuple(run for key in keys for run in read_runs(key, folder))


def read_runs(key: str, folder: Path | None = None) -> tuple[OwnRun, ...]:
    """Return the runs kept for a device.

    Raises:
        StorageError: their file cannot be read.
    """
    path = runs_file(key, folder)
    if not path.exists():
        return ()
    try:
        return tuple(_run(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise reading_error(error, path) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError("timed runs are damaged", str(error), "move the file away", Place(str(path))) from error


def keep_run(key: str, run: OwnRun, folder: Path | None = None) -> tuple[OwnRun, ...]:
    """Add a run to those kept for a device, and return them all.

    Raises:
        StorageError: the file cannot be read or written.
    """
    runs = (*read_runs(key, folder), run)
    path = runs_file(key, folder)
    make_folder(path.parent)
    lines = (
        json.dumps({"plan": r.plan, "step_seconds": r.step_seconds, "peak_bytes": r.peak_bytes, "date": r.date})
        for r in runs
    )
    write_atomically(path, "".join(line + "\n" for line in lines), overwrite=True)
    return runs


def _run(data: Mapping[str, object]) -> OwnRun:
    def number(name: str) -> float | None:
        value = data[name]
        return None if value is None else float(cast("float", value))

    return OwnRun(cast("Mapping[str, object]", data["plan"]), number("step_seconds"), number("peak_bytes"),
                  str(data["date"]))  # fmt: skip


def _estimate(resolved: ResolvedPlan, measured: MeasuredEfficiency, catalog: Catalog) -> Estimate:
    device = with_measured(resolved.cluster.device, (measured,))
    return estimate_resolved(replace(resolved, cluster=replace(resolved.cluster, device=device)), catalog)


def _step(estimate: Estimate) -> float:
    return float(estimate.computation.step_seconds.value)


def _reserved(estimate: Estimate) -> float:
    return float(estimate.memory.reserved_bytes.value)


def _faster(measured: MeasuredEfficiency, device: Device, factor: float) -> MeasuredEfficiency:
    scaled = {name: measured.constants.get(name, float(getattr(device.efficiency, name))) * factor for name in SPEEDS}
    # Curves of products and attention are relative to rates that scale with the constants; the others are not.
    curves = tuple(
        curve if "." in curve.name else replace(curve, ratios=tuple(ratio * factor for ratio in curve.ratios))
        for curve in measured.curves
    )
    return replace(measured, constants={**measured.constants, **scaled}, curves=curves)


def _speed_factor(run: OwnRun, resolved: ResolvedPlan, start: MeasuredEfficiency, catalog: Catalog) -> float:
    """Return how much faster the device must be for the run's step time, by halving the range."""
    wanted, device = cast("float", run.step_seconds), resolved.cluster.device
    low, high = 1.0 / LARGEST_FACTOR, LARGEST_FACTOR

    def step(factor: float) -> float:
        return _step(_estimate(resolved, _faster(start, device, factor), catalog))

    if not step(high) < wanted < step(low):
        detail = f"{wanted:.3g} s, estimated {step(1.0):.3g} s"
        raise PlanError("the step time cannot be this plan's on this hardware", detail, "check plan and time")
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if step(middle) > wanted else (low, middle)
    return math.sqrt(low * high)


def _context(run: OwnRun, resolved: ResolvedPlan, measured: MeasuredEfficiency, catalog: Catalog) -> float:
    """Return the memory outside the allocator that makes up for the difference."""
    estimate = _estimate(resolved, measured, catalog)
    outside = (
        cast("float", run.peak_bytes)
        - _reserved(estimate)
        + float(with_measured(resolved.cluster.device, (measured,)).efficiency.context_bytes)
    )
    if outside <= 0:
        detail = f"{cast('float', run.peak_bytes):.4g} B, estimated {_reserved(estimate):.4g} B"
        raise PlanError("the peak is below what the plan's tensors take", detail, "check plan and peak")
    return outside


def _judged(
    name: str,
    cases: Sequence[tuple[OwnRun, ResolvedPlan]],
    measured: MeasuredEfficiency,
    catalog: Catalog,
    figure: Callable[[Estimate], float],
    truth: Callable[[OwnRun], float | None],
) -> FitError | None:
    errors = [
        abs(figure(_estimate(resolved, measured, catalog)) / true - 1.0)
        for run, resolved in cases
        if (true := truth(run)) is not None
    ]
    return FitError(name, len(errors), median(errors), max(errors)) if errors else None
