"""Runs the user timed: what they say of a device beyond its samples, and what that changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from statistics import median
from typing import TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Device, device_key, with_measured
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import (
    Estimate,
    ResolvedPlan,
    estimate_plan,
    estimate_resolved,
    resolve_plan,
    run_like,
    unsure_of,
    with_user_runs,
)
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import FitError, Machine, MeasuredEfficiency, MeasuredRun, possible
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, history_entry
from capacity_tui.engine.runs.sampling.calibration import chosen_files, fit_samples
from capacity_tui.engine.runs.sampling.samples import read_samples, sample_files, take_over_earlier_runs, today
from capacity_tui.engine.uncertainty import KIND
from capacity_tui.engine.units import format_bytes

STEP, REQUEST, PEAK = Figure.STEP_SECONDS, Figure.REQUEST_SECONDS, Figure.MEMORY_RESERVED_BYTES
MOST_RUNS = 50  # A device is fitted to its newest runs: earlier behaviour says little, and each takes a while
_DAY = 10


# Why a run was slower that says nothing of the device: others used it too, or something else ran than its plan.
HELD_UP = {
    "shared": "others used the machine meanwhile",
    "input": "it waited for its data",
    "smaller_batch": "its batch was another than the plan's",
    "larger_batch": "its batch was another than the plan's",
    "precision": "its precision was another than the plan's",
    "devices": "it ran on another number of devices than the plan's",
}


@dataclass(frozen=True, slots=True)
class UserRun:
    """One run with what was measured."""

    plan: Mapping[str, object]  # as data of a plan file, with nothing open
    step_seconds: float | None  # time of an optimizer step, or of a request; None where it was not measured
    peak_bytes: float | None  # device memory the driver showed (a CPU: the process) at its peak; None likewise
    date: str  # ISO day
    others: float = 0.0  # share of the machine that others used meanwhile
    why: tuple[str, ...] = ()  # codes of why it differed from its plan, as whoever watched it saw that
    # key that its device's measurements go by; empty where it is not known
    device: str = field(default="", compare=False)

    @property
    def held_up(self) -> str:
        """Why its time says nothing of the device, in words; empty where it does."""
        return next((HELD_UP[code] for code in self.why if code in HELD_UP), "")

    @property
    def weight(self) -> float:
        """How much it counts: less where others used the machine too."""
        return max(1.0 - self.others, 0.0) ** 2


def user_run(plan: Plan, step_seconds: float | None, peak_bytes: float | None) -> UserRun:
    """Return a run of today; raises PlanError if nothing was measured."""
    if step_seconds is None and peak_bytes is None:
        raise PlanError("nothing was measured", hint="give --step-seconds, --peak-gib or --log")
    return UserRun(plan.plain_data(), step_seconds, peak_bytes, today())


def run_entry(
    run: UserRun, machine: Machine, catalog: Catalog, details: Mapping[str, object] | None = None
) -> RunRecord:
    """Return a run as an entry of the history, with what was predicted of it before it is learnt from."""
    predicted = estimate_plan(Plan.model_validate(run.plan), machine, catalog)
    figures = {STEP: run.step_seconds, PEAK: run.peak_bytes}
    return history_entry(predicted, "run", {key: value for key, value in figures.items() if value is not None}, details)


def kept_runs(history: History) -> tuple[UserRun, ...]:
    """Return the runs of all devices whose step or memory was measured, in the order of the devices' names.

    Raises:
        StorageError: the history cannot be read.
    """
    take_over_earlier_runs(history)
    entries = history.find(WantedRuns(measured=True))
    return tuple(
        measured for run in sorted(entries, key=lambda run: (run.device, run.started)) if (measured := user_run_of(run))
    )


def read_runs(key: str, history: History) -> tuple[UserRun, ...]:
    """Return the newest runs of a device whose step or memory was measured, the oldest of them first.

    Raises:
        StorageError: the history cannot be read.
    """
    take_over_earlier_runs(history)
    runs = (user_run_of(run) for run in reversed(history.find(WantedRuns(device=key, measured=True))))
    return tuple(measured for measured in runs if measured is not None)[-MOST_RUNS:]


def with_cores_of(machine: Machine, run: UserRun) -> Machine:
    """Return a machine with as many usable cores as it had when a run of its processor was measured."""
    cores = run.device.rpartition("-")[2]
    if not run.device.startswith("cpu-") or not cores.isdigit():
        return machine
    usable = replace(machine.cpu.usable_threads, value=int(cores))
    return replace(machine, accelerators=(), cpu=replace(machine.cpu, usable_threads=usable))


def keep_run(entry: RunRecord, history: History) -> tuple[UserRun, ...]:
    """Add a run to those kept, and return those of its device.

    Raises:
        StorageError: the history cannot be read or written.
    """
    take_over_earlier_runs(history)
    history.keep(entry)
    return read_runs(entry.device, history)


def user_run_of(run: RunRecord) -> UserRun | None:
    """Return the run of an entry; None where it ran without a plan, or something else was measured."""
    step, peak = run.actual.get(STEP) or run.actual.get(REQUEST), run.actual.get(PEAK)
    if run.plan is None or not (step or peak):
        return None
    others, why = run.details.get("others"), run.details.get("why")
    return UserRun(
        run.plan,
        step,
        peak,
        run.started[:_DAY],
        others if isinstance(others, float) else 0.0,
        tuple(map(str, why)) if isinstance(why, list | tuple) else (),
        run.device,
    )


LARGEST_FACTOR = 20.0  # A run this many times faster or slower than estimated is another run than its plan says
HALVINGS = 40

# A peak of less than this share of what a plan's tensors are estimated to take is that of another run.
LEAST_SHARE = 0.5


_Case: TypeAlias = tuple[UserRun, ResolvedPlan]


def resolved_run(plan: Plan, catalog: Catalog, machine: Machine) -> ResolvedPlan:
    """Return a run's plan with its hardware as the catalogue describes it, nothing measured."""
    return resolve_plan(plan, catalog, replace(machine, measured=()))


def fit_runs(
    base: MeasuredEfficiency | None,
    runs: Sequence[UserRun],
    machine: Machine,
    catalog: Catalog,
    left_out: Callable[[UserRun, CapacityError], None] | None = None,
) -> MeasuredEfficiency:
    """Return constants with what the user's runs say beyond them, each for plans that are like it.

    Args:
        base: what samples gave; None without samples.
        left_out: called with each run that cannot have been its plan, or whose time others made, and is left out.

    Raises:
        PlanError: a run is so far from its plan that something else must have run; with ``left_out``, all are.
        HardwareError: what would meet it cannot be.
    """
    cases = list(_resolved(runs, machine, catalog, left_out))
    if not cases:
        raise _NO_RUN
    start = base or MeasuredEfficiency(device_key(cases[0][1].cluster.device), runs[-1].date, {})
    refused: list[CapacityError] = []
    measured: list[tuple[_Case, MeasuredRun]] = []
    for case in cases:
        try:
            if case[0].held_up:
                detail = f"of its time nothing is learnt: {case[0].held_up}"
                refused.append(PlanError("the run was held up", detail, "run it again while nothing else runs"))
                (left_out or (lambda *_: None))(case[0], refused[-1])
            if (learnt := _measured_run(*case, start, catalog)) is not None:
                measured.append((case, learnt))
        except PlanError as error:
            if left_out is None:
                raise
            left_out(case[0], error)
    if not measured:
        raise refused[-1] if refused else _NO_RUN
    fitted = replace(start, runs=tuple(run for _, run in measured), date=max(start.date, *(run.date for run in runs)))
    timed = [case for case, run in measured if run.speed is not None]
    held = [case for case, run in measured if run.peak_bytes is not None]
    errors = (
        _judged("own runs, step time", timed, fitted, catalog, _step, lambda run: run.step_seconds),
        _judged("own runs, memory", held, fitted, catalog, _reserved, lambda run: run.peak_bytes),
    )
    kept = tuple(error for error in errors if error is not None)
    return possible(replace(fitted, errors=(*start.errors, *kept)))


_NO_RUN = PlanError("none of the runs can be that of its plan", hint="check plans and what was measured")


def _resolved(
    runs: Sequence[UserRun],
    machine: Machine,
    catalog: Catalog,
    left_out: Callable[[UserRun, CapacityError], None] | None,
) -> Iterator[_Case]:
    for run in runs:
        try:
            yield run, resolved_run(plan_from_data(run.plan), catalog, machine)
        except CapacityError as error:
            if left_out is None:
                raise
            left_out(run, error)


def estimate_as_measured(resolved: ResolvedPlan, measured: MeasuredEfficiency | None, catalog: Catalog) -> Estimate:
    """Return the estimate of a plan with what was measured of its device, the user's own runs among it."""
    device = with_measured(resolved.cluster.device, () if measured is None else (measured,))
    like = run_like(resolved.plan, resolved.family, resolved.shape, device, catalog)
    cluster = with_user_runs(replace(resolved.cluster, device=device), like, catalog)
    return estimate_resolved(replace(resolved, cluster=cluster), catalog)


def _step(estimate: Estimate) -> float:
    """Return the time of an optimizer step, of a fit, or of a request that is served."""
    infer = estimate.computation.infer
    request = None if infer is None else infer.request_seconds
    return float((request or estimate.computation.step_seconds).value)


def _reserved(estimate: Estimate) -> float:
    return float(estimate.memory.reserved_bytes.value)


def _measured_run(
    run: UserRun, resolved: ResolvedPlan, start: MeasuredEfficiency, catalog: Catalog
) -> MeasuredRun | None:
    """Return what a run says of its device; None where it says nothing."""
    device = with_measured(resolved.cluster.device, (start,))
    estimate = _at_speed(resolved, device, 1.0, catalog)
    tensors = _reserved(estimate) - float(device.efficiency.context_bytes)
    if run.peak_bytes and run.peak_bytes < LEAST_SHARE * tensors:
        detail = f"{format_bytes(run.peak_bytes)}, estimated {format_bytes(_reserved(estimate))}"
        raise PlanError("the peak is below what the plan's tensors take", detail, "check plan and peak")
    memory = device.memory_bytes
    if run.peak_bytes and memory is not None and run.peak_bytes > float(memory):
        detail = f"{format_bytes(run.peak_bytes)} of {format_bytes(float(memory))}"
        raise PlanError("the peak is above the memory of the device", detail, "check hardware and peak")
    speed = _speed_factor(run.step_seconds, resolved, device, catalog) if run.step_seconds and not run.held_up else None
    if speed is None and not run.peak_bytes:
        return None
    like = run_like(resolved.plan, resolved.family, resolved.shape, device, catalog)
    return MeasuredRun(
        date=run.date,
        words=like.words,
        numbers={name: float(number) for name, number in like.numbers.items()},
        speed=speed,
        peak_bytes=run.peak_bytes or None,
        tensor_bytes=max(tensors, 0.0),
        weight=run.weight,
        unsure=unsure_of(estimate),
    )


def _at_speed(resolved: ResolvedPlan, device: Device, speed: float, catalog: Catalog) -> Estimate:
    cluster = replace(resolved.cluster, device=device.with_speed(speed))
    return estimate_resolved(replace(resolved, cluster=cluster), catalog)


def _speed_factor(wanted: float, resolved: ResolvedPlan, device: Device, catalog: Catalog) -> float:
    """Return how much faster the device must be for a step time, by halving the range."""
    low, high = 1.0 / LARGEST_FACTOR, LARGEST_FACTOR

    def step(speed: float) -> float:
        return _step(_at_speed(resolved, device, speed, catalog))

    if not step(high) < wanted < step(low):
        detail = f"{wanted:.3g} s, estimated {step(1.0):.3g} s"
        raise PlanError("the step time cannot be this plan's on this hardware", detail, "check plan and time")
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if step(middle) > wanted else (low, middle)
    return math.sqrt(low * high)


def _judged(
    name: str,
    cases: Sequence[tuple[UserRun, ResolvedPlan]],
    measured: MeasuredEfficiency,
    catalog: Catalog,
    figure: Callable[[Estimate], float],
    truth: Callable[[UserRun], float | None],
) -> FitError | None:
    errors = [
        abs(figure(estimate_as_measured(resolved, measured, catalog)) / true - 1.0)
        for run, resolved in cases
        if (true := truth(run)) is not None
    ]
    return FitError(name, len(errors), median(errors), max(errors)) if errors else None


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a run taught, with others of its device that are kept."""

    measured: MeasuredEfficiency  # constants that plans rest on from then on
    alike: int  # how many of the runs are of its kind of work
    left_out: tuple[str, ...]  # why others are left out
    # before, after: the estimate of the run's own plan without what was learnt and with it
    before: Estimate
    after: Estimate


def learnt_from(run: RunRecord, machine: Machine, catalog: Catalog, history: History) -> Learnt:
    """Return what a run teaches, with those of its device that are kept; nothing is written.

    Raises:
        PlanError: there is nothing to learn from the run, or it cannot be that of its plan.
        StorageError: the history cannot be read.
    """
    newest = user_run_of(run)
    if newest is None:
        hint = "watch it with --plan, until its step or its memory is known"
        raise PlanError("nothing can be learnt from this run: it has no plan, or nothing was measured", hint=hint)
    resolved = resolved_run(plan_from_data(newest.plan), catalog, machine)
    device = resolved.cluster.device
    base, left_out = sampled_constants(device), list[str]()
    fit_runs(base, (newest,), machine, catalog)
    others = tuple(other for other in read_runs(device_key(device), history) if other != newest)
    measured = fit_runs(
        base, (*others, newest), machine, catalog, lambda run, error: left_out.append(f"{run.date}: {error.one_line()}")
    )
    kind = run_like(resolved.plan, resolved.family, resolved.shape, device, catalog).words[KIND]
    known = next((one for one in machine.measured if one.device == measured.device), None)
    return Learnt(
        measured,
        sum(entry.words.get(KIND) == kind for entry in measured.runs),
        tuple(left_out),
        estimate_as_measured(resolved, known, catalog),
        estimate_as_measured(resolved, measured, catalog),
    )


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
