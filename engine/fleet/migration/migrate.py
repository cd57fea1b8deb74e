"""Moving a job to other machines: every instance with what the job reaches there, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import ceil, log2
from time import monotonic
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, Instance, Workload, load_catalog
from capacity_tui.engine.cluster import Device, instances_for
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate.serving import why_not_read
from capacity_tui.engine.fleet.migration.priced import Machine, alternative, break_even, current_alternative
from capacity_tui.engine.fleet.migration.question import (
    Alternative,
    Migration,
    MigrationQuestion,
    Remedy,
    question_of_workload,
)
from capacity_tui.engine.fleet.migration.recommendations import complexity, move_parts
from capacity_tui.engine.fleet.migration.throughput import NEARLY, Fewest, Job, Throughput
from capacity_tui.engine.fleet.migration.verdict import judged, risk
from capacity_tui.engine.fleet.options import assumed
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes import fallbacks, fill
from capacity_tui.engine.solve.search import hardware_ids

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine as DetectedMachine


CALLBACK_SECONDS = 0.2  # The best so far is reported so often at most
# What rounds least of the formats that halve weights of 16 bits; engines advise others besides.
_EIGHT_BITS = ("int8", "fp8")


class Remedies:
    """Finds remedies: changes with which planning the job on the same machine makes it fit."""

    def __init__(self, job: Job, catalog: Catalog) -> None:
        self._job, self._plan, self._catalog = job, job.plan, catalog

    def of(self, alternative: Alternative, device: Device) -> tuple[Remedy, ...]:
        """Return what helps on a machine, the least harmful first, up to the first that is enough.

        Where nothing is enough, what comes nearest is returned.
        """
        ways = list(self._ways(device))
        furthest = self._remedy(alternative, *ways[-1]) if ways else None
        # The last goes furthest: where that is not enough, nothing before it is.
        if furthest is not None and not furthest.is_enough:
            return (furthest,)
        remedies = (self._remedy(alternative, *way) for way in ways[:-1])
        enough = next((remedy for remedy in remedies if remedy is not None and remedy.is_enough), furthest)
        return () if enough is None else (enough,)

    def _remedy(self, alternative: Alternative, words: str, change: Mapping[str, object]) -> Remedy | None:
        """Return a change with what is still missing then; None where it does not help."""
        reached = self._job.with_change({**alternative.set, **change})
        helps = not reached.is_short or reached.short_bytes < alternative.short_bytes
        if reached.filled is None or not helps:
            return None
        return Remedy(words, reached.set, reached.short_bytes, is_enough=not reached.is_short)

    def _ways(self, device: Device) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield what may be given up: of serving one thing at a time, in training one thing more each time."""
        if self._plan.is_inference:
            yield from self._served(device)
            return
        together: dict[str, object] = {}
        applied: list[str] = []
        for words, change in self._trained():
            together |= change
            applied.append(words)
            yield ", ".join(applied), dict(together)

    def _served(self, device: Device) -> Iterator[tuple[str, Mapping[str, object]]]:
        inference, formats = self._job.settled.inference, self._catalog.quantizations
        rows = self._catalog.engine_rows(inference.engine)
        lighter = next((row.lighter_weights for row in rows if row.lighter_weights), ())
        own = formats.find(inference.weights_format).bits_per_weight or 0.0
        for name in dict.fromkeys((*_EIGHT_BITS, *lighter)):
            row = formats.find(name)
            is_read = not why_not_read(row, inference.engine, device, self._catalog)
            if is_read and (row.bits_per_weight or own) < own:
                yield f"weights in {name}", {Key.INFERENCE_WEIGHTS: name}

    def _trained(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        # Sequences stay as long as they are: what is learned from shorter ones is another thing.
        for way in fallbacks(self._plan, 0, self._catalog):
            if way.sets:
                yield way.words, way.sets
            elif any(path.endswith("offload") for path in way.opens):
                yield way.words, dict.fromkeys(way.opens, AUTO)


def with_larger_machines(alternatives: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Return alternatives, those that do not hold the job with the cheapest one of their provider that does."""
    holding = [alternative for alternative in alternatives if alternative.fits and alternative.usd_month is not None]
    cheapest: dict[str, Alternative] = {}
    for entry in sorted(holding, key=lambda item: item.usd_month or 0.0):
        cheapest.setdefault(entry.provider, entry)
    return tuple(_with_larger(alternative, cheapest.get(alternative.provider)) for alternative in alternatives)


def _with_larger(alternative: Alternative, larger: Alternative | None) -> Alternative:
    if alternative.fits or larger is None:
        return alternative
    remedy = Remedy(f"{larger.count} x {larger.instance} holds it", larger.set)
    return replace(alternative, remedies=(*alternative.remedies, remedy))


@dataclass(frozen=True, slots=True)
class Comparing:
    """What instances are compared with."""

    question: MigrationQuestion  # the job, and how it would be paid
    now: Machine  # the machine where it is
    current: Alternative  # the same, priced
    job: Job  # the job as it is tried elsewhere
    catalog: Catalog
    remedies: Remedies = field(init=False)  # finds what helps where it does not fit
    # how many instances a service took on devices that are alike: where to begin with others
    counts: dict[tuple[object, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
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
        reached = self._enough(row, self._throughput_on(row))
        return Machine(row.id, instances_for(row, reached.devices), self.job.cluster(reached), reached, row)

    def _throughput_on(self, row: Instance) -> Throughput:
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

    def _together(self, row: Instance, short: int, most: int) -> Throughput | None:
        """Return the job on the fewest instances that hold it together; None where nothing is gained by more of them.

        Args:
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
            trial = self.job.on(row.id, (short << middle) * row.sold_devices)
            low, high, result = (low, middle, trial) if trial.figures else (middle, high, result)
        return result

    def _enough(self, row: Instance, reached: Throughput) -> Throughput:
        """Return a service on as many devices as its load takes, else as its present work does; others as they are."""
        if not self.job.is_replicated or reached.work is None:
            return reached
        inference, present = self.question.plan.inference, self.now.reached.work
        is_loaded = inference.is_load
        wanted = inference.arrival_rate or (0.0 if present is None else mean(present.value))
        fewest = Fewest(
            lambda count: self.job.on(row.id, reached.devices * count), reached, wanted, keeps_limits=is_loaded
        )
        alike = (row.accelerator, row.device_share, reached.devices)
        guess = 1 if is_loaded else ceil(wanted / mean(reached.work.value) - NEARLY)
        count, result = fewest.from_guess(self.counts.get(alike, max(1, guess)))
        self.counts[alike] = count
        return result


def migrate(
    question: MigrationQuestion,
    catalog: Catalog | None = None,
    machine: DetectedMachine | None = None,
    callback: Callable[[Migration], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Migration:
    """Return what moving a job to other instances would bring; what was found so far where it is stopped.

    Raises:
        CapacityError: the job cannot be estimated where it is, or nothing is called what was asked for.
    """
    facts = catalog or load_catalog()
    started = monotonic()
    now = _current(question, facts, machine)
    rows = _rows(question, now, facts)
    assert now.reached.filled is not None  # noqa: S101 - the job is estimated where it is
    job = Job(question.plan, now.reached.filled.plan, question.fills, question.payment, facts, machine)
    current = current_alternative(question, now)
    current = replace(current, risk=risk(current, now))
    if now.reached.is_short:
        current = replace(current, remedies=Remedies(job, facts).of(current, now.cluster.device))
    comparing = Comparing(question, now, current, job, facts)
    alternatives: list[Alternative] = []
    due = started + CALLBACK_SECONDS
    for row in rows:
        if stopped():
            break
        alternatives.append(comparing.with_instance(row))
        if callback is not None and monotonic() >= due and len(alternatives) < len(rows):
            callback(_answer(question, current, alternatives, len(rows), started))
            due = monotonic() + CALLBACK_SECONDS
    return _answer(question, current, alternatives, len(rows), started)


def _rows(question: MigrationQuestion, now: Machine, catalog: Catalog) -> tuple[Instance, ...]:
    """Return the instances to compare: the wanted ones, else all with devices of the kind that the job runs on."""
    if not question.instances:
        on_processors = now.cluster.device.is_processor
        return tuple(row for row in catalog.instances.values() if on_processors or row.accelerator is not None)
    ids = [name for instance in question.instances for name in hardware_ids((instance,), catalog)]
    named = dict.fromkeys(entry for name in ids for entry in _instances_of(name, catalog))
    rows = tuple(catalog.instances[name] for name in named)
    if not rows:
        raise PlanError("no instance is called that", ", ".join(question.instances)[:80], "see `instances --list`")
    return rows


def _instances_of(name: str, catalog: Catalog) -> Iterator[str]:
    """Yield the instance of a name, or those that have the device of that name."""
    if name in catalog.instances:
        yield name
    else:
        yield from (row.id for row in catalog.instances_with(name))


def _current(question: MigrationQuestion, catalog: Catalog, machine: DetectedMachine | None) -> Machine:
    filled = fill(question.plan, question.fills, machine, catalog)
    cluster, name = filled.resolved.cluster, filled.plan.hardware.name
    reached = Throughput.of(filled, {})
    row = catalog.instances.known(name)
    count = reached.devices if row is None else instances_for(row, reached.devices)
    return Machine(name if row is None else row.id, count, cluster, reached, row)


def _answer(
    question: MigrationQuestion, current: Alternative, alternatives: Sequence[Alternative], wanted: int, started: float
) -> Migration:
    complete = len(alternatives) == wanted
    answer = judged(question, current, with_larger_machines(alternatives) if complete else alternatives)
    return replace(answer, complete=complete, share_done=len(alternatives) / wanted, seconds=monotonic() - started)


USUAL_SET = "basic_demos"  # The set that is run where nobody names one


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """One workload, and what moving it would bring."""

    workload: str  # id in the catalogue
    name: str
    expected_outcome: str | None  # what people expect of moving; None where nobody said
    migration: Migration | None  # what was found; None where the workload cannot be estimated
    failure: str = ""  # why it cannot be

    @property
    def outcome(self) -> str:
        """What was found, in a sentence."""
        if self.migration is None:
            return f"cannot be estimated: {self.failure}"
        return f"{self.migration.verdict}: {'; '.join(self.migration.reasons)}"


def run_workloads(
    names: Iterable[str],
    catalog: Catalog | None = None,
    callback: Callable[[str, Migration], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    instances: tuple[str, ...] = (),
) -> Iterator[WorkloadRun]:
    """Yield what moving each of some workloads would bring; one that cannot be estimated does not keep the rest.

    Args:
        names: ids in the workloads catalogue, each run once.
        callback: gets the id of the workload at work and what was found so far.
        instances: instances to compare with, or a provider for all of its own; none for all.

    Raises:
        CatalogError: no workload is called that.
    """
    facts = catalog or load_catalog()
    rows = [facts.workloads.find(name) for name in dict.fromkeys(names)]
    for row in rows:
        if not stopped():
            yield _run(row, instances, facts, callback, stopped)


def workloads_of(sets: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return the workloads of sets, those of the usual one by default; raises CatalogError for an unknown set."""
    rows = [catalog.workload_sets.find(name) for name in tuple(sets) or (USUAL_SET,)]
    return tuple(dict.fromkeys(name for row in rows for name in row.workloads))


def _run(
    row: Workload,
    instances: tuple[str, ...],
    catalog: Catalog,
    callback: Callable[[str, Migration], None] | None,
    stopped: Callable[[], bool],
) -> WorkloadRun:
    def tell(so_far: Migration) -> None:
        if callback is not None:
            callback(row.id, so_far)

    try:
        question = replace(question_of_workload(row, catalog), instances=instances)
        result = migrate(question, catalog, None, tell, stopped)
    except CapacityError as error:
        return WorkloadRun(row.id, row.name, row.expected_outcome, None, error.one_line())
    return WorkloadRun(row.id, row.name, row.expected_outcome, result)
