"""One instance after the other compared with the machine where a job is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, log2

from capacity_tui.engine.catalog import Catalog, Instance
from capacity_tui.engine.cluster import instances_for
from capacity_tui.engine.fleet.database import assumed
from capacity_tui.engine.fleet.migration.alternative import Alternative
from capacity_tui.engine.fleet.migration.changes import complexity
from capacity_tui.engine.fleet.migration.months import break_even
from capacity_tui.engine.fleet.migration.moving import move_parts
from capacity_tui.engine.fleet.migration.priced import Machine, alternative
from capacity_tui.engine.fleet.migration.question import MigrationQuestion
from capacity_tui.engine.fleet.migration.remedies import Remedies
from capacity_tui.engine.fleet.migration.throughput import NEARLY, Fewest, Job, Reached
from capacity_tui.engine.fleet.migration.verdict import risk
from capacity_tui.engine.numeric import mean


@dataclass(frozen=True, slots=True)
class Comparing:
    """What instances are compared with.

    Attributes:
        question: the job, and how it would be paid.
        now: the machine where it is.
        current: the same, priced.
        job: the job as it is tried elsewhere.
        remedies: finds what helps where it does not fit.
        counts: how many instances a service took on devices that are alike: where to begin with others.
    """

    question: MigrationQuestion
    now: Machine
    current: Alternative
    job: Job
    catalog: Catalog
    remedies: Remedies = field(init=False)
    counts: dict[tuple[object, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with no remedies known."""
        object.__setattr__(self, "remedies", Remedies(self.job, self.catalog))

    def with_instance(self, row: Instance) -> Alternative:
        """Return what the job would be on instances of one kind, as many of them as it asks for."""
        machine = self._machine(row)
        result = alternative(self.question, machine, self.current, self.now)
        machine = machine.paid(is_spot=result.is_spot)
        result = replace(result, complexity=complexity(machine, self.now, self.catalog))
        if machine.reached.is_short:
            return replace(
                result, remedies=self.remedies.of(result, machine.cluster.device), risk=risk(result, machine)
            )
        parts = tuple(move_parts(self.question, result, machine, self.now, self.catalog))
        known = [part.usd for part in parts if part.usd is not None]
        once = sum(known) if len(known) == len(parts) else None
        result = replace(result, move=parts, move_usd=once, move_hours=sum(part.hours for part in parts))
        saving = result.saving_usd
        if once is not None and saving is not None and mean(saving.value) > 0:
            hours = mean(break_even(once, saving.value, self.question.hours))
            result = replace(result, break_even_hours=hours)
        return replace(result, risk=risk(result, machine))

    def _machine(self, row: Instance) -> Machine:
        reached = self._enough(row, self._reached(row))
        return Machine(row.id, instances_for(row, reached.devices), self.job.cluster(reached), reached, row)

    def _reached(self, row: Instance) -> Reached:
        """Return what the job reaches on as many instances as hold it.

        A service begins with one of them, a training with the devices that it has now, whole instances of them. What
        these do not hold is tried on more of them, where a network joins those.
        """
        sold, have, job = row.sold_devices, self.now.reached.devices, self.job
        count = 1 if job.is_replicated else -(-have // sold)
        most = max(count, int(assumed("most_together"))) if row.network_link is not None else count
        reached = job.on(row.id, count * sold)
        if reached.is_short and 2 * count <= most:
            reached = self._together(row, count, most) or reached
        if reached.refusal and have % sold:
            part = job.on(row.id, have)
            return part if part.fits else reached
        return reached

    def _together(self, row: Instance, short: int, most: int) -> Reached | None:
        """Return the job on the fewest instances that hold it together; None where nothing is gained by more of them.

        Args:
            row: one instance.
            short: a number of them whose memory is short.
            most: how many are tried at most, each number twice the one before.
        """
        doublings = int(log2(most / short))
        largest = self.job.on(row.id, (short << doublings) * row.sold_devices)
        if not largest.figures:
            return None if largest.refusal else largest
        low, high, result = 0, doublings, largest
        while high - low > 1:
            middle = (low + high) // 2
            tried = self.job.on(row.id, (short << middle) * row.sold_devices)
            low, high, result = (low, middle, tried) if tried.figures else (middle, high, result)
        return result

    def _enough(self, row: Instance, reached: Reached) -> Reached:
        """Return a service on as many devices as its load takes, else as its present work does; others as they are."""
        if not self.job.is_replicated or reached.work is None:
            return reached
        inference, present = self.question.plan.inference, self.now.reached.work
        is_loaded = inference.request_rate is not None or inference.concurrency is not None
        wanted = inference.request_rate or (0.0 if present is None else mean(present.value))
        fewest = Fewest(lambda count: self.job.on(row.id, reached.devices * count), wanted, keeps_limits=is_loaded)
        alike = (row.accelerator, row.device_share, reached.devices)
        guess = 1 if is_loaded else ceil(wanted / mean(reached.work.value) - NEARLY)
        count, result = fewest.from_guess(self.counts.get(alike, max(1, guess)))
        self.counts[alike] = count
        return result
