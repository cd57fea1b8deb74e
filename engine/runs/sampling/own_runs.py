"""Runs the user timed: what they say about the machine beyond single kernels."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TypeAlias, cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Device, device_key, with_measured
from capacity_tui.engine.errors import CapacityError, PlanError, StorageError
from capacity_tui.engine.estimate import Estimate, ResolvedPlan, estimate_plan, estimate_resolved, resolve_plan
from capacity_tui.engine.files import data_folder, reading_error, rename_file
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import FOLDER, FitError, Machine, MeasuredEfficiency, possible
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, history_entry
from capacity_tui.engine.runs.sampling.calibration import chosen_files, fit_samples
from capacity_tui.engine.runs.sampling.samples import read_samples, sample_files, today

# Constants that all scale when the whole machine is faster or slower than its kernels say.
SPEEDS = ("sustained", "stream", "elementwise")

# A run this many times faster or slower than estimated is another run than its plan says.
LARGEST_FACTOR = 20.0

HALVINGS = 40

STEP, PEAK = Figure.STEP_SECONDS, Figure.MEMORY_RESERVED_BYTES

MOST_RUNS = 50
"""A device is fitted to its newest runs: earlier behaviour says little, and each takes a while."""

_DAY = 10


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


_Case: TypeAlias = tuple[OwnRun, ResolvedPlan]


def own_run(plan: Plan, step_seconds: float | None, peak_bytes: float | None) -> OwnRun:
    """Return a run of today.

    Raises:
        PlanError: nothing was measured.
    """
    if step_seconds is None and peak_bytes is None:
        raise PlanError("nothing was measured", hint="give --step-seconds, --peak-gib or --log")
    return OwnRun(plan.plain_data(), step_seconds, peak_bytes, today())


def resolved_run(plan: Plan, catalog: Catalog, machine: Machine) -> ResolvedPlan:
    """Return a run's plan with its hardware as the catalogue describes it, nothing measured."""
    return resolve_plan(plan, catalog, replace(machine, measured=()))


def fit_runs(
    base: MeasuredEfficiency | None,
    runs: Sequence[OwnRun],
    machine: Machine,
    catalog: Catalog,
    left_out: Callable[[OwnRun, CapacityError], None] | None = None,
) -> MeasuredEfficiency:
    """Return constants that meet the user's runs: speed and memory outside the allocator, medians over the runs.

    Args:
        base: what samples gave; None without samples.
        left_out: called with each run that cannot have been its plan, and is left out.

    Raises:
        PlanError: a run is so far from its plan that something else must have run; with ``left_out``, all are.
        HardwareError: the constants that would meet it cannot be.
    """
    cases = list(_resolved(runs, machine, catalog, left_out))
    if not cases:
        raise PlanError("none of the runs can be that of its plan", hint="check plans and what was measured")
    device = cases[0][1].cluster.device
    start = base or MeasuredEfficiency(device_key(device), runs[-1].date, {})
    timed = list(_possible(cases, lambda run: run.step_seconds, _speed_factor, start, catalog, left_out))
    fitted = start if not timed else _faster(start, device, math.exp(median(math.log(factor) for _, factor in timed)))
    held = list(_possible(cases, lambda run: run.peak_bytes, _context, fitted, catalog, left_out))
    if held:
        fitted = replace(fitted, constants={**fitted.constants, "context_bytes": median(bytes_ for _, bytes_ in held)})
    if not timed and not held:
        raise PlanError("none of the runs can be that of its plan", hint="check plans and what was measured")
    errors = (
        _judged(
            "own runs, step time", [case for case, _ in timed], fitted, catalog, _step, lambda run: run.step_seconds
        ),
        _judged("own runs, memory", [case for case, _ in held], fitted, catalog, _reserved, lambda run: run.peak_bytes),
    )
    kept = tuple(error for error in errors if error is not None)
    date = max(start.date, *(run.date for run in runs))
    return possible(replace(fitted, date=date, errors=(*start.errors, *kept)))


def run_entry(
    run: OwnRun, machine: Machine, catalog: Catalog, details: Mapping[str, object] | None = None
) -> RunRecord:
    """Return a run as an entry of the history, with what was predicted of it before it is learnt from.

    Args:
        run: its plan and what was measured.
        machine: this machine, with what was measured on it so far.
        details: further plain data.

    Raises:
        CapacityError: its plan cannot be estimated.
    """
    predicted = estimate_plan(Plan.model_validate(run.plan), machine, catalog)
    figures = {STEP: run.step_seconds, PEAK: run.peak_bytes}
    return history_entry(predicted, "run", {key: value for key, value in figures.items() if value is not None}, details)


def kept_runs(history: History) -> tuple[OwnRun, ...]:
    """Return the runs of all devices whose step or memory was measured, in the order of the devices' names.

    Raises:
        StorageError: the history cannot be read.
    """
    take_over_earlier_runs(history)
    entries = history.find(WantedRuns(measured=True))
    return tuple(
        measured for run in sorted(entries, key=lambda run: (run.device, run.started)) if (measured := own_run_of(run))
    )


def read_runs(key: str, history: History, most: int = MOST_RUNS) -> tuple[OwnRun, ...]:
    """Return the newest runs of a device whose step or memory was measured, the oldest of them first.

    Raises:
        StorageError: the history cannot be read.
    """
    take_over_earlier_runs(history)
    runs = (own_run_of(run) for run in reversed(history.find(WantedRuns(device=key, measured=True))))
    return tuple(measured for measured in runs if measured is not None)[-most:]


def keep_run(entry: RunRecord, history: History) -> tuple[OwnRun, ...]:
    """Add a run to those kept, and return those of its device.

    Raises:
        StorageError: the history cannot be read or written.
    """
    take_over_earlier_runs(history)
    history.keep(entry)
    return read_runs(entry.device, history)


def _resolved(
    runs: Sequence[OwnRun], machine: Machine, catalog: Catalog, left_out: Callable[[OwnRun, CapacityError], None] | None
) -> Iterator[_Case]:
    """Yield the runs with what their plans stand for here."""
    for run in runs:
        try:
            yield run, resolved_run(plan_from_data(run.plan), catalog, machine)
        except CapacityError as error:
            if left_out is None:
                raise
            left_out(run, error)


def _possible(
    cases: Sequence[_Case],
    measured: Callable[[OwnRun], float | None],
    constant: Callable[[OwnRun, ResolvedPlan, MeasuredEfficiency, Catalog], float],
    start: MeasuredEfficiency,
    catalog: Catalog,
    left_out: Callable[[OwnRun, CapacityError], None] | None,
) -> Iterator[tuple[_Case, float]]:
    """Yield the runs of which something was measured, with the constant that meets it."""
    for case in cases:
        if not measured(case[0]):
            continue
        try:
            yield case, constant(*case, start, catalog)
        except PlanError as error:
            if left_out is None:
                raise
            left_out(case[0], error)


def own_run_of(run: RunRecord) -> OwnRun | None:
    """Return the run of an entry; None where it ran without a plan, or something else was measured."""
    step, peak = run.actual.get(STEP), run.actual.get(PEAK)
    if run.plan is None or not (step or peak):
        return None
    return OwnRun(run.plan, step, peak, run.started[:_DAY])


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


_ENDING = ".runs.jsonl"

_TAKEN = ".old"

_ID_BYTES = 5

_FIGURES = {"step_seconds": Figure.STEP_SECONDS, "peak_bytes": Figure.MEMORY_RESERVED_BYTES}


def take_over_earlier_runs(history: History, folder: Path | None = None) -> None:
    """Put runs of earlier versions into the history, and give their files another name.

    Args:
        folder: the program's data, the user's own by default.

    Raises:
        StorageError: a file cannot be read, or nothing can be kept.
    """
    for file in sorted(((folder or data_folder()) / FOLDER).glob(f"*{_ENDING}")):
        bad: list[str] = []
        history.keep(*_runs(file, bad))
        aside = _free_name(file)
        rename_file(file, aside)
        if bad:
            history.notes.append(f"{aside}: {len(bad)} of its lines cannot be read, and stay there alone: {bad[0]}")


def _runs(file: Path, bad: list[str]) -> Iterator[RunRecord]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise reading_error(error, file) from error
    for number, line in enumerate(lines, 1):
        try:
            yield _run(json.loads(line), file.name.removesuffix(_ENDING), f"{file.name}:{number}:{line}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            bad.append(f"line {number}: {error}")


def _run(data: Mapping[str, object], device: str, text: str) -> RunRecord:
    return RunRecord(
        kind="run",
        plan=cast("Mapping[str, object]", data["plan"]),
        actual={key: float(cast("float", data[name])) for name, key in _FIGURES.items() if data[name] is not None},
        device=device,
        started=f"{data['date']}T00:00:00.000Z",
        # The same run has the same id, should this be stopped before the file has its other name.
        id=hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest(),
    )


def _free_name(file: Path) -> Path:
    names = (file.with_name(f"{file.name}{_TAKEN}{number or ''}") for number in range(1000))
    free = next((name for name in names if not name.exists()), None)
    if free is None:
        raise StorageError("there are too many earlier files of runs", str(file), "move them away")
    return free


def learnt_from(run: RunRecord, machine: Machine, catalog: Catalog, history: History) -> MeasuredEfficiency:
    """Return constants that meet a run, and those of its device that are kept; nothing is written.

    Args:
        run: with its plan, and step or memory measured.
        history: where other runs of the device are kept.

    Raises:
        PlanError: there is nothing to learn from the run, or it cannot be that of its plan.
        StorageError: the history cannot be read.
    """
    newest = own_run_of(run)
    if newest is None:
        hint = "watch it with --plan, until its step or its memory is known"
        raise PlanError("nothing can be learnt from this run: it has no plan, or nothing was measured", hint=hint)
    plain = replace(machine, measured=())
    device = resolved_run(plan_from_data(newest.plan), catalog, plain).cluster.device
    base = sampled_constants(device)
    alone = fit_runs(base, (newest,), plain, catalog)
    others = tuple(other for other in read_runs(device_key(device), history) if other != newest)
    return fit_runs(base, (*others, newest), plain, catalog, lambda *_: None) if others else alone


def sampled_constants(device: Device, report: Callable[[str], object] = str) -> MeasuredEfficiency | None:
    """Return what a device's samples say; None where there are none.

    Args:
        report: called with a note on each damaged file.
    """
    files = [read_samples(path) for path in sample_files(device_key(device))]
    for file in files:
        if file.set_aside is not None:
            report(f"{file.path} was damaged: kept as {file.set_aside}, what could be read is used")
    return fit_samples(device, chosen_files(files)) if files else None
