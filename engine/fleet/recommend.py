"""Which machines to take for a job that has to end in time: the cheapest, the fastest, and the one that balances."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.choose.advice.host_requirements import kept_bytes
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.search.answer import Answer as SearchAnswer
from capacity_tui.engine.choose.search.answer import Found, Rejected
from capacity_tui.engine.choose.search.catalogue_names import INSTANCES, hardware_ids
from capacity_tui.engine.choose.search.question import Goal, Limit, Question
from capacity_tui.engine.choose.search.search import search
from capacity_tui.engine.choose.space.grid import Axis, powers_of_two
from capacity_tui.engine.cluster.pricing import instances_for
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate.data.prices import block_storage_usd
from capacity_tui.engine.fleet.database import Database, database_for
from capacity_tui.engine.models.families import family_of
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.field_lists import memory_searched
from capacity_tui.engine.plan.plan import AUTO, Plan
from capacity_tui.engine.uncertainty.intervals import Interval
from capacity_tui.engine.units import GIGA

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

TIME, USD = "computation.estimated_train_time_seconds", "cost.usd"
SHOWN = 3
_TRIED, _MOST_DEVICES = 60, 64
_INSTANCE, _DEVICES = "hardware.name", "hardware.devices"
_CHECKPOINTING, _RECOMPUTED = "training.checkpointing", ("none", "full")


@dataclass(frozen=True, slots=True)
class DeadlineQuestion:
    """A job, and when it has to be done.

    Attributes:
        plan: the job; its hardware does not matter.
        deadline_seconds: the longest that it may take, at the far end of its range.
        budget_usd: the most that it may cost, likewise; None for any price.
        hardware: instances or devices to choose among, as a search takes them; none for all instances.
        devices: numbers of devices to try; none for powers of two.
    """

    plan: Plan
    deadline_seconds: float
    budget_usd: float | None = None
    hardware: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines that do a job in time.

    Attributes:
        instance: id of the instance, or of the device.
        count: instances that are rented.
        devices: devices in use; of processors alone the machines.
        accelerator: id of these devices; None for processors alone.
        set: the change that makes the plan this one.
        seconds: time of the job.
        usd: price of the job, without storage.
        usd_per_hour: price of all machines.
        price_source: whose price it is, and of which day.
        memory_bytes: host memory of all machines; None where that is not published.
        memory_needed_bytes: host memory that the job keeps states in.
        cores: virtual cores of all machines; None where they are not published.
        storage_bytes: disk space for data and checkpoints.
        storage_usd: its price for the time of the job; None where no price is known.
        database: where samples and runs are kept.
    """

    instance: str
    count: int
    devices: int
    accelerator: str | None
    set: dict[str, object]
    seconds: Interval
    usd: Interval
    usd_per_hour: float | None
    price_source: str
    memory_bytes: float | None
    memory_needed_bytes: float
    cores: int | None
    storage_bytes: float
    storage_usd: float | None
    database: Database


@dataclass(frozen=True, slots=True)
class Recommended:
    """What to take for a job.

    Attributes:
        cheapest: the cheapest, each of another instance.
        fastest: the fastest, each of another instance.
        balanced: where a percent of time counts as a percent of money; None where nothing ends in time.
        evaluated: configurations that were tried.
        missed: what the others miss: memory, time or money.
        rejected: what cannot be, and why.
        complete: whether everything was tried.
    """

    cheapest: tuple[Machines, ...]
    fastest: tuple[Machines, ...]
    balanced: Machines | None
    evaluated: int
    missed: tuple[Rejected, ...]
    rejected: tuple[Rejected, ...]
    complete: bool


def recommend(
    question: DeadlineQuestion,
    catalog: Catalog | None = None,
    machine: Machine | None = None,
    told: Callable[[SearchAnswer], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Recommended:
    """Return which machines to take for a job that has to end in time.

    Args:
        question: the job.
        catalog: facts; the shipped ones with the user's own by default.
        machine: the detected machine, where it is among those to choose from.
        told: gets what the search found so far now and then.
        stopped: asked now and then whether to stop; what was found by then is returned.

    Raises:
        CapacityError: the job has no length, or cannot be estimated.
    """
    facts = catalog or load_catalog()
    plan = question.plan
    if plan.task == "infer":
        raise PlanError("a service has no end", hint="fleet serve finds machines for a load")
    is_transformer = family_of(plan.model.name, facts).kind == "transformer"
    opened = dict.fromkeys(memory_searched(), AUTO) if is_transformer else {}
    opened.pop(_CHECKPOINTING, None)
    limits = [Limit(TIME, most=question.deadline_seconds)]
    limits += [] if question.budget_usd is None else [Limit(USD, most=question.budget_usd)]
    asked = Question(
        with_values(plan, {**opened, "parallelism.dp": None, "parallelism.shard": None}) if opened else plan,
        vary=(Axis(_CHECKPOINTING, _RECOMPUTED),) if is_transformer else (),
        hardware=_rented(question.hardware or (INSTANCES,), facts),
        devices=question.devices or powers_of_two(_MOST_DEVICES),
        limits=tuple(limits),
        goal=Goal(USD),
        pareto=(TIME, USD),
        top=_TRIED,
        each=1,
    )
    found = search(asked, facts, machine, told, stopped)
    front = [found.top[place] for place in found.pareto]
    quick = search(replace(asked, goal=Goal(TIME), pareto=()), facts, machine, told, stopped) if front else found
    cheapest = _of_each_instance(sorted(found.top, key=lambda each: _figure(each, USD)))
    fastest = _of_each_instance(sorted((*quick.top, *front), key=lambda each: _figure(each, TIME)))
    balanced = min(front, key=lambda each: _figure(each, TIME) * _figure(each, USD), default=None)
    described = _Describing(question.plan, facts, machine)
    return Recommended(
        cheapest=tuple(map(described.machines, cheapest)),
        fastest=tuple(map(described.machines, fastest)),
        balanced=None if balanced is None else described.machines(balanced),
        evaluated=found.evaluated + (quick.evaluated if front else 0),
        missed=tuple(found.missed),
        rejected=tuple(found.rejected),
        complete=found.complete and quick.complete,
    )


def _rented(names: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return the hardware that names stand for; of a maker that also rents out, what it rents out."""
    found: list[str] = []
    for name in names:
        ids = hardware_ids((name,), catalog)
        found += [row_id for row_id in ids if row_id in catalog.instances] or ids
    return tuple(dict.fromkeys(found))


def _of_each_instance(found: Iterable[Found]) -> list[Found]:
    """Return the first few of different instances."""
    first: dict[object, Found] = {}
    for each in found:
        first.setdefault(each.set.get(_INSTANCE), each)
    return list(first.values())[:SHOWN]


def _figure(found: Found, key: str) -> float:
    return mean(found.figures[key].value)


@dataclass(frozen=True, slots=True)
class _Describing:
    """Says what machines have, and what the job keeps on them."""

    plan: Plan
    catalog: Catalog
    machine: Machine | None

    def machines(self, found: Found) -> Machines:
        """Return one configuration with the machines that it is of."""
        filled = fill(with_values(self.plan, found.set), "balanced", self.machine, self.catalog)
        cluster, estimate = filled.resolved.cluster, filled.estimate
        name, devices = str(found.set.get(_INSTANCE, self.plan.hardware.name)), int(cluster.devices)
        row_id = self.catalog.instances.find_id(name)
        row = None if row_id is None else self.catalog.instances[row_id]
        count = devices if row is None else instances_for(row, devices)
        data, checkpoints = kept_bytes(estimate)
        seconds, usd = found.figures[TIME], found.figures[USD]
        cores = row and (row.vcpus or row.cores)
        return Machines(
            instance=name if row is None else row.id,
            count=count,
            devices=devices,
            accelerator=cluster.device.id if row is None else row.accelerator,
            set=dict(found.set),
            seconds=seconds,
            usd=usd,
            usd_per_hour=cluster.price.rate,
            price_source=cluster.price.rate_source,
            memory_bytes=row.memory_gb * GIGA * count if row is not None and row.memory_gb else None,
            memory_needed_bytes=_most(estimate.memory.host_bytes) * devices,
            cores=cores * count if cores else None,
            storage_bytes=data + checkpoints,
            storage_usd=None
            if row is None
            else block_storage_usd(row.provider, data + checkpoints, mean(seconds.value), self.catalog),
            database=database_for(data, count),
        )


def _most(value: Number) -> float:
    return float(np.max(np.asarray(value)))
