"""Which machines to take for a job that has to end in time: the cheapest, the fastest, and the one that balances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import instances_for
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import formula
from capacity_tui.engine.estimate.data import block_storage_usd
from capacity_tui.engine.fleet.options import (
    TIME,
    USD,
    Option,
    Options,
    PlannedOption,
    assumed,
    assumed_startup,
    first_options,
)
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.models import family_of
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, memory_searched
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.advice import kept_bytes
from capacity_tui.engine.solve.search import INSTANCES, Rejected
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import GIGA, HOUR_SECONDS, format_money, format_seconds
from capacity_tui.engine.verdict import Verdict

SHOWN = 3
CALLBACK_SECONDS = 0.2  # What was found so far is callback so often at most
_MOST_DEVICES = 64


@dataclass(frozen=True, slots=True)
class DeadlineQuestion:
    """A job, and when it has to be done."""

    plan: Plan  # the job; its hardware does not matter
    deadline_seconds: float  # the longest that it may take, at the far end of its range
    budget_usd: float | None = None  # the most that it may cost, likewise; None for any price
    # instances or devices to choose among, as a search takes them; none for all instances
    hardware: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()  # numbers of devices to try; none for powers of two

    def missed(self, figures: Mapping[str, Interval]) -> str:
        """Return which limit a plan does not keep at the far end of its range, in words; empty where it keeps both."""
        if TIME not in figures:
            hint = "set training.tokens, training.steps, or training.samples with training.epochs"
            raise PlanError("a job without a length has no end", hint=hint)
        usd = mean(figures[USD].high) if USD in figures else float("inf")
        return self.missed_by(mean(figures[TIME].high), usd)

    def missed_by(self, seconds: float, usd: float) -> str:
        """Return which limit a time and a price do not keep, in words; empty where they keep both."""
        if seconds > self.deadline_seconds:
            return f"{TIME} above {format_seconds(self.deadline_seconds)}"
        if self.budget_usd is not None and usd > self.budget_usd:
            return f"{USD} above {format_money(self.budget_usd)}"
        return ""


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines that do a job in time."""

    instance: str  # id of the instance, or of the device
    count: int  # instances that are rented
    devices: int  # devices in use; of processors alone the machines
    accelerator: str | None  # id of these devices; None for processors alone
    set: dict[str, object]  # the change that makes the plan this one
    verdict: Verdict
    seconds: Interval  # time of the job
    usd: Interval  # price of the job, without storage
    usd_per_hour: float | None
    price_source: str  # whose price it is, and of which day
    memory_bytes: float | None  # host memory of all machines; None where that is not published
    cores: int | None  # virtual cores of all machines; None where they are not published
    storage_bytes: float  # disk space for data and checkpoints
    storage_usd: float | None  # its price for the time of the job; None where no price is known
    database: Database  # where samples and runs are kept


@dataclass(frozen=True, slots=True)
class Recommended:
    """What to take for a job."""

    cheapest: tuple[Machines, ...]  # the cheapest, each of another instance
    fastest: tuple[Machines, ...]  # the fastest, each of another instance
    # where price and time together are least, as :func:`weighed_usd` weighs them; None where nothing ends in time
    balanced: Machines | None
    evaluated: int  # machines that were planned; others cannot be among the best
    missed: tuple[Rejected, ...]  # what the others miss: memory, time or money
    rejected: tuple[Rejected, ...]  # what cannot be, and why
    complete: bool  # whether everything was tried
    listed: int = 0  # machines that there are to plan


# Price of a job with its time: twice as many machines have to save more of the deadline than they add in money.
weighed_usd = formula()


def recommend(
    question: DeadlineQuestion,
    catalog: Catalog | None = None,
    machine: Machine | None = None,
    callback: Callable[[Recommended], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Recommended:
    """Return which machines to take for a job that has to end in time.

    Each is a plan: with the change that it names the user's plan is filled and estimated by planning itself.

    Raises:
        CapacityError: the job has no length, or cannot be estimated.
    """
    facts = catalog or load_catalog()
    plan = question.plan
    if plan.is_inference:
        raise PlanError("a service has no end", hint="fleet serve finds machines for a load")
    options = Options(plan, _opened(plan, facts), question.missed, facts, machine)
    among = tuple(options.of(question.hardware or (INSTANCES,), question.devices, _MOST_DEVICES))
    finding = _Finding(question, options, among, facts, callback, stopped)
    return finding.answer()


def _opened(plan: Plan, catalog: Catalog) -> dict[str, object]:
    """Return what is left to the mode: layout and settings belong to a machine, and so does a price."""
    is_transformer = family_of(plan.model.name, catalog).is_transformer
    paths = (*(memory_searched() if is_transformer else ()), Key.PRICING_USD_PER_HOUR)
    return {path: AUTO for path in paths if plan.value(path) not in (None, AUTO)}


@dataclass(slots=True)
class _Finding:
    """Looks at machines in the order of what they cannot be better than."""

    question: DeadlineQuestion
    options: Options  # plans the job on machines
    among: tuple[Option, ...]
    catalog: Catalog
    callback: Callable[[Recommended], None] | None  # gets what was found so far
    stopped: Callable[[], bool]
    due: float = 0.0
    complete: bool = True

    def answer(self) -> Recommended:
        """Return the cheapest, the fastest and the balanced machines."""
        flops = self._flops()
        possible = []
        for option in self.among:
            why = self.question.missed_by(option.least_seconds(flops), option.least_usd(flops))
            if why:
                self.options.leave_out(option, why)
            else:
                possible.append(option)
        seconds, usd = (lambda option: option.least_seconds(flops)), (lambda option: option.least_usd(flops))
        first_options(self.options, possible, usd, lambda entry: entry.usd, SHOWN, self._shown)
        first_options(self.options, possible, seconds, lambda entry: entry.seconds, SHOWN, self._shown)
        least = partial(self._least_weighed, flops)
        first_options(self.options, possible, least, self._weighed, 1, self._shown)
        return self._answer()

    def _flops(self) -> float:
        """Return the FLOPs of the job, as planning it on the first machine gives them; 0 where it runs on none."""
        for option in self.among:
            self.options.planned(option)
            if self.options.flops is not None or self._shown():
                break
        return self.options.flops or 0.0

    def _answer(self) -> Recommended:
        holding = self.options.holding
        balanced = min(holding, key=self._weighed, default=None)
        return Recommended(
            cheapest=tuple(self._machines(entry) for entry in _of_instances(holding, lambda entry: entry.usd)),
            fastest=tuple(self._machines(entry) for entry in _of_instances(holding, lambda entry: entry.seconds)),
            balanced=None if balanced is None else self._machines(balanced),
            evaluated=self.options.evaluated,
            missed=self.options.missed,
            rejected=self.options.refused,
            complete=self.complete,
            listed=len(self.among),
        )

    def _shown(self) -> bool:
        """Tell what was found so far now and then; return whether to stop."""
        if self.callback is not None and monotonic() >= self.due:
            self.callback(self._answer())
            self.due = monotonic() + CALLBACK_SECONDS
        if self.stopped():
            self.complete = False
        return not self.complete

    def _weighed(self, option: PlannedOption) -> float:
        startup = mean(self._startup(option).value)
        usd = option.usd + startup / HOUR_SECONDS * option.option.usd_per_hour
        return mean(weighed_usd(usd, option.seconds + startup, self.question.deadline_seconds))

    def _least_weighed(self, flops: float, option: Option) -> float:
        return mean(weighed_usd(option.least_usd(flops), option.least_seconds(flops), self.question.deadline_seconds))

    def _startup(self, option: PlannedOption) -> Interval:
        """Return the time until an instance works: each reads the weights that its devices hold."""
        cluster, weights = option.filled.resolved.cluster, option.filled.estimate.memory.parts.get("weights", 0.0)
        together = min(mean(cluster.devices), mean(cluster.per_node))
        return assumed_startup(mean(weights) * together, self.catalog).seconds

    def _machines(self, option: PlannedOption) -> Machines:
        cluster, estimate = option.filled.resolved.cluster, option.filled.estimate
        name, devices = option.option.name, option.option.devices
        row = self.catalog.instances.known(name)
        count = devices if row is None else instances_for(row, devices)
        data, checkpoints = kept_bytes(estimate)
        seconds, usd = option.figures[TIME], option.figures[USD]
        cores = row and (row.vcpus or row.cores)
        return Machines(
            instance=name if row is None else row.id,
            count=count,
            devices=devices,
            accelerator=cluster.device.id if row is None else row.accelerator,
            set=dict(option.set),
            verdict=estimate.verdict,
            seconds=seconds,
            usd=usd,
            usd_per_hour=cluster.price.rate,
            price_source=cluster.price.rate_source,
            memory_bytes=row.memory_gb * GIGA * count if row is not None and row.memory_gb else None,
            cores=cores * count if cores else None,
            storage_bytes=data + checkpoints,
            storage_usd=None
            if row is None
            else block_storage_usd(row.provider, data + checkpoints, mean(seconds.value), self.catalog),
            database=database_for(data, count),
        )


def _of_instances(
    options: Iterable[PlannedOption], figure: Callable[[PlannedOption], float]
) -> tuple[PlannedOption, ...]:
    """Return the first few of different instances."""
    first: dict[str, PlannedOption] = {}
    for option in sorted(options, key=figure):
        first.setdefault(option.option.name, option)
    return tuple(first.values())[:SHOWN]


@dataclass(frozen=True, slots=True)
class Database:
    """Where samples and runs are kept."""

    kind: str  # ``file`` for SQLite beside the data, ``server`` for one that several machines write to (MongoDB)
    storage_bytes: float  # disk space of data, indexes and what is free between them
    memory_bytes: float  # memory of its server, or of the cache of a file
    cores: int  # cores of its server; 0 for a file, which the job's own serve
    reason: str  # why it is that kind


database_bytes = formula()  # Disk space of a database, and memory of its server whose cache holds what is worked with
server_memory_bytes = formula()


def database_for(data_bytes: float, machines: int) -> Database:
    """Return what keeps so much data for a job on so many machines."""
    stored = mean(database_bytes(data_bytes, assumed("database_overhead")))
    base = assumed("database_base_gb") * GIGA
    most = assumed("file_database_gb") * GIGA
    if machines == 1 and stored <= most:
        return Database("file", stored, base, 0, "one machine writes, and a file is enough")
    memory = mean(server_memory_bytes(base, stored, assumed("database_working_share"), assumed("database_cache_share")))
    reason = f"{machines} machines write at once" if machines > 1 else "too much for a single file"
    return Database("server", stored, memory, int(assumed("database_cores")), reason)
