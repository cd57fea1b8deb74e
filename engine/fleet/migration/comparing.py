"""One instance after the other compared with the machine where a job is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from capacity_tui.engine.catalog import Catalog, Instance
from capacity_tui.engine.cluster.pricing import instances_for
from capacity_tui.engine.cluster.resolve_cluster import resolve_cluster
from capacity_tui.engine.fleet.assumptions import assumed
from capacity_tui.engine.fleet.migration.alternative import Alternative, Remedy
from capacity_tui.engine.fleet.migration.changes import complexity
from capacity_tui.engine.fleet.migration.months import break_even
from capacity_tui.engine.fleet.migration.moving import move_parts
from capacity_tui.engine.fleet.migration.priced import Machine, alternative
from capacity_tui.engine.fleet.migration.question import MigrationQuestion
from capacity_tui.engine.fleet.migration.reached import Job, Reached
from capacity_tui.engine.fleet.migration.remedies import Remedies
from capacity_tui.engine.fleet.migration.risks import risk
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.plan import AUTO, HardwareSection, PricingSection

# Machines that do the same work as nearly as numbers can tell are enough.
_NEARLY = 1e-9


@dataclass(frozen=True, slots=True)
class Comparing:
    """What instances are compared with.

    Attributes:
        question: the job, and how it would be paid.
        now: the machine where it is.
        current: the same, priced.
        job: the job as it is tried elsewhere.
        catalog: facts.
        remedies: what helped where it did not fit.
    """

    question: MigrationQuestion
    now: Machine
    current: Alternative
    job: Job
    catalog: Catalog
    remedies: Remedies = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no remedies known."""
        object.__setattr__(self, "remedies", Remedies(self.job, self.question.plan, self.catalog))

    def with_instance(self, row: Instance) -> Alternative:
        """Return what the job would be on instances of one kind, as many of them as it asks for."""
        machine = self._machine(row)
        found = alternative(self.question, machine, self.current, self.now)
        machine = machine.paid(is_spot=found.is_spot)
        found = replace(found, complexity=complexity(machine, self.now, self.catalog))
        if not found.fits:
            return replace(found, remedies=self._remedies(found, machine), risk=risk(found, machine))
        parts = tuple(move_parts(self.question, found, machine, self.now, self.catalog))
        known = [part.usd for part in parts if part.usd is not None]
        once = sum(known) if len(known) == len(parts) else None
        found = replace(found, move=parts, move_usd=once, move_hours=sum(part.hours for part in parts))
        saving = found.saving_usd
        if once is not None and saving is not None and mean(saving.value) > 0:
            hours = mean(break_even(once, saving.value, self.question.hours))
            found = replace(found, break_even_hours=hours)
        return replace(found, risk=risk(found, machine))

    def _machine(self, row: Instance) -> Machine:
        reached = self._reached(row)
        reached = self.job.settled(reached, row, reached.devices * self._copies(reached))
        section = HardwareSection(name=row.id, devices=reached.devices)
        cluster = resolve_cluster(section, PricingSection.model_validate(self._payment()), self.catalog)
        change = {f"pricing.{name}": value for name, value in self._payment().items()}
        if self.question.plan.pricing.usd_per_hour is not None:
            change["pricing.usd_per_hour"] = AUTO
        reached = replace(reached, set={**reached.set, **change})
        return Machine(row.id, instances_for(row, reached.devices), cluster, reached, row)

    def _reached(self, row: Instance) -> Reached:
        """Return what the job reaches on as many instances as hold it.

        A service begins with one of them, a training with the devices that it has now, whole instances of them. What
        these do not hold is tried on more of them, where a network joins those.
        """
        sold, have, job = row.sold_devices, self.now.reached.devices, self.job
        count = 1 if job.is_replicated else -(-have // sold)
        most = max(count, int(assumed("most_together"))) if row.network_link is not None else count
        reached = job.on(row, count * sold)
        while not reached.fits and not reached.refusal and 2 * count <= most:
            count *= 2
            larger = job.on(row, count * sold)
            reached = larger if larger.fits or larger.short_bytes < reached.short_bytes else reached
        if not reached.fits and reached.refusal and have % sold:
            part = job.on(row, have)
            return part if part.fits else reached
        return reached

    def _copies(self, reached: Reached) -> int:
        """Return how many times the devices found are needed: for a service's load, else for its present work."""
        work = reached.work
        if not self.job.is_replicated or work is None:
            return 1
        load, present = self.question.plan.inference.request_rate, self.now.reached.work
        wanted = load if load is not None else 0.0 if present is None else mean(present.value)
        return max(1, int(np.ceil(wanted / mean(work.value) - _NEARLY)))

    def _payment(self) -> dict[str, str]:
        """Return how alternatives are paid for, as the plan's pricing says it."""
        wanted = {"region": self.question.region, "commitment": self.question.commitment}
        return {name: value for name, value in wanted.items() if value is not None}

    def _remedies(self, found: Alternative, machine: Machine) -> tuple[Remedy, ...]:
        device, memory = machine.cluster.device, machine.cluster.device.memory_bytes
        if not found.short_bytes or memory is None:
            return ()
        alike = (device.kind, tuple(device.peaks), found.devices, mean(machine.cluster.direct_devices))
        return self.remedies.of(found, mean(memory), alike)
