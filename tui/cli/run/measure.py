"""``sample`` and ``calibrate``: measure this machine, and let estimates rest on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rich.table import Table
from rich.text import Text

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import cluster as clusters
from capacity_tui.engine import machine as machines
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.present import runs as run_texts
from capacity_tui.engine.runs import accuracy as accuracies
from capacity_tui.engine.runs import history as histories
from capacity_tui.engine.runs import logs, sampling
from capacity_tui.engine.solve import modes
from capacity_tui.engine.units import format_bytes, format_percent, format_seconds
from capacity_tui.tui.cli.options import opened_history, options, output_options, tell_notes
from capacity_tui.tui.cli.output import Output, progress, tell, tell_faults

if TYPE_CHECKING:
    from rich.console import RenderableType


GIB = 2**30
_INTERRUPTED = "stopped; what was timed is kept, the same command resumes there"


@click.group()
def sample() -> None:
    """Time kernels and collectives on this machine."""


@sample.command()
@options("sample kernels")
def kernels(device: str, quick: bool, software: Literal["torch", "numpy"] | None, only: tuple[str, ...]) -> None:
    """Time matrix products, attention, norms, loss, optimizer and copies over a grid of shapes.

    May be stopped at any time; the same command goes on where it stopped.
    """
    if unknown := [name for name in only if name not in sampling.KERNELS]:
        raise click.UsageError(f"no kernel is called {unknown[0]!r}; known: {', '.join(sampling.KERNELS)}")
    wanted = frozenset(name for name in sampling.KERNELS if not only or name in only)
    with progress("looking at this machine"):
        where = _where(device) if software != "numpy" else "cpu"
        backend = sampling.sampling_backend(where, software)
        this, _, _ = _this_device(where)
    tell(f"sampling {this.name} through {backend.name}")
    limit = sampling.QUICK_LIMIT_SECONDS if quick else sampling.LIMIT_SECONDS
    cases = sampling.sampling_grid(backend, quick, wanted, this.peaks)
    _show(sampling.sample_kernels(backend, clusters.device_key(this), cases, limit_seconds=limit))
    tell("done: capacity-tui calibrate makes constants of the samples")


@sample.command()
@options("sample collectives")
def collectives(device: str, quick: bool, ranks: int | None) -> None:
    """Time all-reduce, all-gather, reduce-scatter, all-to-all and send/recv between processes on this machine."""
    with progress("looking at this machine"):
        where = _where(device)
        this, machine, count = _this_device(where)
    most = ranks or (count if where == "gpu" else int(machine.cpu.usable_threads.value or 2))
    groups = sampling.collective_groups(where, most)
    if not groups:
        raise click.UsageError("one device alone has nobody to pass messages to")
    tell(f"sampling collectives of {this.name}, up to {most} ranks")
    _show(
        sampling.sample_collectives(
            clusters.device_key(this), groups, sampling.QUICK_SIZES if quick else sampling.SIZES
        )
    )
    tell("done: capacity-tui calibrate makes constants of the samples")


@click.command()
@options("calibrate")
@output_options("table", "json", to_file=False)
def calibrate(
    device: str,
    plan_name: str | None,
    step_seconds: float | None,
    peak_gib: float | None,
    log_path: Path | None,
    shared: Path | None,
    is_undone: bool,
    output: Output,
) -> None:
    """Turn samples, and runs of your own, into constants that estimates for this machine use."""
    if is_undone:
        if plan_name or step_seconds or peak_gib or log_path or shared:
            raise click.UsageError("--undo takes back what was calibrated: give nothing to calibrate on beside it")
        _undo(device)
        return
    if shared is not None:
        if plan_name or step_seconds or peak_gib or log_path:
            raise click.UsageError("shared runs have their own plans: give --from alone")
        if not _shared_runs_here(shared, device):
            return
    if plan_name is None:
        if step_seconds or peak_gib or log_path:
            raise click.UsageError("a run needs its plan: give --plan too")
        measured = _from_samples(device)
    else:
        measured = _from_run(plan_name, step_seconds, peak_gib, log_path)
    before = sampling.constants_before(measured)
    path = sampling.write_measured(measured)
    if output.is_data:
        output.data(asdict(measured))
    else:
        output.show(measured_tables(measured, before))
    tell(f"wrote {path}: estimates of every plan on {measured.device} use these constants from now on")
    tell("capacity-tui calibrate --undo goes back; runs stay in the history until `history forget ID`")


def _undo(device: str) -> None:
    key = clusters.device_key(_this_device(_calibrated(device))[0])
    before = sampling.restore_constants(key)
    what = "as shipped" if before is None else f"of {before.date}, with {len(before.runs)} runs"
    tell(f"estimates for {key} use the constants {what} again; the same command swaps back")


def _shared_runs_here(path: Path, device: str) -> int:
    """Keep the runs that somebody shared, and return how many are of the device that is calibrated."""
    try:
        runs = accuracies.read_shared(path)
    except PlanError as error:
        *others, last = (error, *error.further)
        tell_faults(others)
        raise last from None
    key = clusters.device_key(_this_device(_calibrated(device))[0])
    history = opened_history()
    known = {_measurement(run.device, run.step_seconds, run.peak_bytes) for run in sampling.kept_runs(history)}
    new = [
        run
        for run in runs
        if _measurement(run.device, run.actual.get(Figure.STEP_SECONDS), run.actual.get(Figure.MEMORY_RESERVED_BYTES))
        not in known
    ]
    history.keep(*new)
    tell_notes(history)
    here = sum(run.device == key for run in runs)
    elsewhere = sorted({run.device for run in runs} - {key})
    apart = f"; kept apart, of other devices: {', '.join(elsewhere)}" if elsewhere else ""
    twice = f"; {len(runs) - len(new)} were there already" if len(new) < len(runs) else ""
    tell(f"took {len(new)} runs into the history, {here} of the file are of {key}{apart}{twice}")
    return here


def _measurement(device: str, step_seconds: float | None, peak_bytes: float | None) -> tuple[str, str, str]:
    """Return what tells a run from others, alike in the history and in a file."""
    return device, f"{step_seconds or 0:.9g}", f"{peak_bytes or 0:.9g}"


def _calibrated(device: str) -> sampling.Where:
    return "cpu" if device == "auto" and not _this_device("gpu")[2] else _named(device)


def _from_samples(device: str) -> machines.MeasuredEfficiency:
    this, machine, _ = _this_device(_calibrated(device))
    history = opened_history()
    runs = sampling.read_runs(clusters.device_key(this), history)
    tell_notes(history)
    if not runs:
        _tell_other_devices(history, clusters.device_key(this))
    measured = _sampled(this, needed=not runs)
    return (
        sampling.fit_runs(measured, runs, machine, catalogs.load_catalog(), _tell_left_out)
        if runs
        else _needed(measured)
    )


def _tell_other_devices(history: histories.History, key: str) -> None:
    """Say of which other devices runs are kept, such as the same processor with another number of cores."""
    devices = sorted({run.device for run in sampling.kept_runs(history)} - {key, ""})
    if devices:
        tell(f"no runs of {key} are kept; there are some of {', '.join(devices)}")


def _from_run(
    plan_name: str, step_seconds: float | None, peak_gib: float | None, log_path: Path | None
) -> machines.MeasuredEfficiency:
    from capacity_tui.tui.cli.plan_sources import read_plan

    peak = None if peak_gib is None else peak_gib * GIB
    if log_path is not None:
        log = logs.read_log(str(log_path))
        step_seconds, peak = step_seconds or log.step_seconds, peak or log.peak_bytes
        if step_seconds is None and peak is None:
            detail, hint = "neither times of steps nor memory", "give --step-seconds or --peak-gib beside it"
            raise PlanError("nothing was measured", detail, hint, Place(str(log_path)))
    known, catalog = machines.detect(), catalogs.load_catalog()
    machine = replace(known, measured=())
    plan = modes.with_auto_resolved(read_plan(plan_name), machine, catalog)
    run = sampling.user_run(plan, step_seconds, peak)
    device = sampling.resolved_run(plan, catalog, machine).cluster.device
    base = _sampled(device, needed=False)
    # Fitted before it is kept, so that a run that cannot be is never kept.
    sampling.fit_runs(base, (run,), machine, catalog)
    history, entry = opened_history(), sampling.run_entry(run, known, catalog)
    sampling.keep_run(entry, history)
    learnt = sampling.learnt_from(entry, known, catalog, history)
    tell_notes(history)
    tell(run_texts.learnt_text(learnt))
    return learnt.measured


def _tell_left_out(run: sampling.UserRun, error: CapacityError) -> None:
    tell(f"capacity-tui: the run of {run.date} is left out: {error.one_line()}")


def _sampled(device: clusters.Device, *, needed: bool) -> machines.MeasuredEfficiency | None:
    """Return what a device's samples say; None where there are none and none are needed."""
    constants = sampling.sampled_constants(device, tell)
    return sampling.fit_samples(device, ()) if constants is None and needed else constants


def _needed(measured: machines.MeasuredEfficiency | None) -> machines.MeasuredEfficiency:
    if measured is None:
        raise click.UsageError("there is nothing to calibrate on")
    return measured


def _where(device: str) -> sampling.Where:
    """Return what to sample; ``auto`` takes the GPU only where torch can use it."""
    if device != "auto":
        return _named(device)

    if not _this_device("gpu")[2]:
        return "cpu"
    if sampling.gpu_usable():
        return "gpu"
    tell("torch cannot use the GPU here: sampling the CPU")
    return "cpu"


def _named(device: str) -> sampling.Where:
    return "gpu" if device in ("auto", "gpu") else "cpu"


def _this_device(where: sampling.Where) -> tuple[clusters.Device, machines.Machine, int]:
    """Return this machine's accelerator or CPU, the machine, and how many accelerators it has (0 without)."""
    machine = replace(machines.detect(), measured=())
    if where == "cpu":
        machine = replace(machine, accelerators=())
    cluster = clusters.cluster_of_machine(machine, catalogs.load_catalog())
    return cluster.device, machine, cluster.devices if not cluster.device.is_processor else 0


def _show(steps: Iterator[sampling.Progress]) -> None:
    """Tell each timing as it comes; Ctrl-C ends it in good order."""
    try:
        for step in steps:
            timing = step.sample
            result = "cannot run here" if timing is None else f"{format_seconds(timing.seconds)} ± {timing.spread:.0%}"
            tell(f"{step.done:4d} of {step.total}  {step.what}  {result}")
    except KeyboardInterrupt:
        tell(_INTERRUPTED)
        raise


def measured_tables(
    measured: machines.MeasuredEfficiency, before: machines.MeasuredEfficiency | None
) -> Iterator[RenderableType]:
    """Yield the constants of a device with what they were, and how well they fit."""
    software = ", ".join(f"{name} {version}" for name, version in measured.software.items())
    yield Text(f"{measured.device}, measured {measured.date}" + (f" with {software}" if software else ""))
    constants = Table("constant", "value", "before")
    known = {} if before is None else _constants(before)
    for name, value in _constants(measured).items():
        constants.add_row(name, f"{value:.4g}", f"{known[name]:.4g}" if name in known else "as shipped")
    if constants.row_count:
        yield constants
    errors = Table("fitted to", "samples", "median error", "worst", "between samples")
    for error in measured.errors:
        between = "" if error.interpolated is None else format_percent(error.interpolated, 1)
        # What one number was fitted to it meets, whatever that is worth.
        spread = [format_percent(share, 1) if error.count > 1 else "n/a" for share in (error.median, error.worst)]
        errors.add_row(error.name, str(error.count), *spread, between)
    yield errors
    if measured.runs:
        yield _runs_table(measured)


def _runs_table(measured: machines.MeasuredEfficiency) -> Table:
    """Return the runs that estimates rest on: how fast the device was in each, and what it kept outside tensors."""
    runs = Table("run of", "kind", "what", "speed", "outside tensors", "weight")
    for run in measured.runs:
        words = [word for name, word in run.words.items() if name != "kind"]
        speed = "n/a" if run.speed is None else f"{run.speed:.2f} ×"
        outside = "n/a" if run.peak_bytes is None else format_bytes(max(run.peak_bytes - run.tensor_bytes, 0.0))
        runs.add_row(run.date, run.words.get("kind", ""), ", ".join(words), speed, outside, f"{run.weight:.2f}")
    return runs


def _constants(measured: machines.MeasuredEfficiency) -> dict[str, float]:
    return {**{f"gemm.{dtype}": share for dtype, share in measured.gemm.items()}, **measured.constants}
