"""What one run that was watched teaches of the machine it ran on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Device, device_key
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.machine import Machine, MeasuredEfficiency
from capacity_tui.engine.observe.history import History, RunRecord
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.sampling.calibration import chosen_files, fit_samples
from capacity_tui.engine.sampling.own_runs import fit_runs, own_run_of, read_runs, resolved_run
from capacity_tui.engine.sampling.samples import read_samples, sample_files


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
