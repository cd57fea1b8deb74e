"""How long jobs take on each kind of machine: as their plans are estimated there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import ON_DEMAND, chosen_quote
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import job_seconds
from capacity_tui.engine.fleet.scheduling.problem import Entries, JobEntry, MachineEntry
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited, with_values
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

NEVER = Interval(np.inf, np.inf, np.inf)


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a job takes on machines of one kind.

    Attributes:
        seconds: the time with its range; infinite where it does not run there.
        reason: why it does not run there; empty where it does.
    """

    seconds: Interval
    reason: str = ""


def durations(
    entries: Entries, catalog: Catalog, read: Callable[[str], Plan], machine: Machine | None = None
) -> list[list[Duration]]:
    """Return how long each job takes on each kind of machine.

    Raises:
        PlanError: a job runs on none of the machines, or nothing is called what it names; all such faults.
    """
    result: list[list[Duration]] = []
    faults: list[PlanError] = []
    for number, job in enumerate(entries.jobs):
        place = entries.document.place("jobs", number)
        name = entries.job_name(number)
        try:
            plan = None if job.plan is None else _plan(job.plan, read)
        except CapacityError as error:
            faults.append(PlanError(f"{name}: {error.title}", error.detail, error.hint, place))
            continue
        result.append(
            [_duration(job, plan, entries, entry, catalog, machine) for entry in range(len(entries.machines))]
        )
        if not any(np.isfinite(mean(entry.seconds.value)) for entry in result[-1]):
            reasons = dict.fromkeys(entry.reason for entry in result[-1])
            detail = "; ".join(list(reasons)[:2])
            faults.append(PlanError(f"{name} runs on none of the machines", detail, "add machines that hold it", place))
    if faults:
        faults[0].further = tuple(faults[1:])
        raise faults[0]
    return result


def usd_per_hour(entry: MachineEntry, catalog: Catalog) -> float | None:
    """Return the price of one machine: its own, or that of the catalogue on demand; None where neither is known."""
    if entry.usd_per_hour is not None:
        return entry.usd_per_hour
    row_id = catalog.instances.find_id(entry.instance)
    quote = None if row_id is None else chosen_quote(catalog.instances[row_id], ON_DEMAND, None, catalog)
    return None if quote is None else quote.usd_per_hour


def _plan(text: str | dict[str, object], read: Callable[[str], Plan]) -> Plan:
    return read(text) if isinstance(text, str) else plan_from_data(text)


def _duration(
    job: JobEntry, plan: Plan | None, entries: Entries, kind: int, catalog: Catalog, machine: Machine | None
) -> Duration:
    """Return how long a job takes on machines of one entry."""
    entry, name = entries.machines[kind], entries.machine_name(kind)
    if job.only_on and name not in job.only_on:
        return Duration(NEVER, f"not on {name}")
    if entry.count < job.machines:
        return Duration(NEVER, f"{name}: {entry.count} of {job.machines} machines")
    if plan is None:
        seconds = job.time or 0.0
        return Duration(Interval.exactly(seconds))
    try:
        return _estimated(plan, entry, job.machines, catalog, machine)
    except CapacityError as error:
        return Duration(NEVER, f"{name}: {error.detail or error.title}")


def _estimated(plan: Plan, entry: MachineEntry, machines: int, catalog: Catalog, machine: Machine | None) -> Duration:
    """Return how long a plan takes on some machines: on its own number of devices on its own hardware, else on all."""
    is_own = plan.hardware.name == entry.instance and machines == 1 and plan.hardware.devices is not None
    there = plan
    if not is_own:
        devices = catalog.sold_together(entry.instance) * machines
        there = with_values(
            edited(plan, {Key.HARDWARE_NAME: entry.instance}, catalog).plan, {Key.HARDWARE_DEVICES: devices}
        )
    estimate = fill(there, "balanced", machine, catalog).estimate
    if estimate.verdict is Verdict.DOES_NOT_FIT:
        return Duration(NEVER, f"{entry.instance}: {estimate.verdict.words}")
    computation = estimate.computation
    if computation.steps is None:
        raise PlanError("its length is open", "the plan gives no tokens, steps or epochs", "give them, or time:")
    steps, step = computation.steps, computation.step_seconds
    return Duration(Interval(*(mean(job_seconds(steps, item)) for item in (step.value, step.low, step.high))))
