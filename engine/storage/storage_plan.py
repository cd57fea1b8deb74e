"""What a training keeps and moves: its data set, checkpoints, caches, main memory, and how its data arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.rows import StorageTier
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.estimate.data import (
    LOCAL,
    Content,
    DataLocation,
    Supply,
    download_bandwidth,
    input_seconds,
    stored_bytes,
    supply_of,
    tier_bandwidth,
    tier_of,
    transfer_price,
)
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes import content_of, taken_per_second
from capacity_tui.engine.storage.checkpoints import (
    Checkpoints,
    HostMemory,
    PhaseEstimate,
    checkpoints_of,
    host_memory_of,
    phase_estimates,
)
from capacity_tui.engine.units import GIGA

REPEATS = "repeats-as-good-as-new"
ELSEWHERE = "another provider"


@dataclass(frozen=True, slots=True)
class Arrival:
    """How the data of one step arrive, beside the work of the devices."""

    # reading_seconds, decoding_seconds: in which they are read, and decoded
    reading_seconds: float
    decoding_seconds: float
    working_seconds: float  # in which the devices work on them
    waiting_seconds: float  # in which they wait for data

    @property
    def slower(self) -> str:
        """What of reading and decoding takes longer."""
        return "reading" if self.reading_seconds >= self.decoding_seconds else "decoding"


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """One place that the data may be read from."""

    tier: StorageTier  # what is read
    bandwidth: float  # bytes a second that a node reads of this format
    needed: float  # bytes a second that a node takes
    copy_seconds: float | None  # seconds until all data are on the disks of the nodes; None where none are copied

    @property
    def is_enough(self) -> bool:
        """Whether devices need not wait for it."""
        return self.bandwidth >= self.needed


@dataclass(frozen=True, slots=True)
class Egress:
    """What a provider takes for data that leave it; data that come in are free."""

    provider: str  # who holds them
    usd_once: float  # for one copy of all of them, USD
    usd_streamed: float  # for every pass that no cache spares, USD
    words: str  # which price, of which day


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """One cache of the data set on each node."""

    tier: StorageTier  # what it lies in
    room: float | None  # bytes there are for it; None where unknown
    # seconds in which one pass through the data is read from it; None where their size is open
    pass_seconds: float | None


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How many tokens or samples memory, disk and job have room for."""

    job: float | None  # those that the job works through; None where its length is open
    unique: float | None  # those of the data set, likewise
    in_memory: float | None  # those that main memory of a node holds in this format; None where its size is unknown
    on_disk: float | None  # those that its disk has room for, likewise
    repeats: float  # passes up to which data seen again teach almost as much as new ones

    @property
    def worthwhile(self) -> float | None:
        """What is worth training on with data that lie on the disk; None where its room is unknown."""
        return None if self.on_disk is None else self.on_disk * self.repeats


@dataclass(frozen=True, slots=True)
class StoragePlan:
    """What a training keeps and moves."""

    answer: Answer  # the training
    content: Content  # what its data are made of
    supply: Supply  # how they arrive
    arrival: Arrival  # the same for one step
    checkpoints: Checkpoints  # what it saves of itself
    sources: tuple[SourceChoice, ...]  # places to read the data from, the plan's own first
    egress: tuple[Egress, ...]  # what providers take for data that leave them, once and streamed
    caches: tuple[CacheChoice, ...]  # where they may be kept beside
    memory: HostMemory  # main memory of a node
    temporary: Mapping[str, float]  # bytes of disk for a while, by what they are for
    budget: TokenBudget  # what there is room for
    phases: tuple[PhaseEstimate, ...] = ()  # its phases, one after the other; empty for one


def storage_plan(answer: Answer, machine: Machine | None = None, catalog: Catalog | None = None) -> StoragePlan:
    """Return what an estimated training keeps and moves.

    Raises:
        PlanError: the plan trains nothing that reads data while it runs.
        CapacityError: one of its phases cannot be.
    """
    facts = catalog or load_catalog()
    content = content_of(answer.resolved, facts)
    if content is None:
        hint = "give a plan that trains a transformer or a network"
        raise PlanError("nothing is read while this runs", hint=hint, place=Place(field=Key.TASK))
    supply = supply_of(answer.plan, content, answer.resolved.cluster, facts)
    computation = answer.estimate.computation
    steps = None if computation.steps is None else mean(computation.steps)
    seconds = None if steps is None else steps * mean(computation.step_seconds.value)
    checkpoints = checkpoints_of(answer, seconds, facts)
    return StoragePlan(
        answer=answer,
        content=content,
        supply=supply,
        arrival=_arrival(answer, supply),
        checkpoints=checkpoints,
        sources=tuple(_sources(answer, supply, facts)),
        egress=tuple(_egress(supply, facts)),
        caches=tuple(_caches(answer, supply, facts)),
        memory=host_memory_of(answer, supply, content, facts),
        temporary=dict(_temporary(supply, content, checkpoints, facts)),
        budget=_budget(answer, supply, steps, facts),
        phases=phase_estimates(answer, machine, facts),
    )


def _arrival(answer: Answer, supply: Supply) -> Arrival:
    units = mean(answer.estimate.computation.units_per_step)
    delivery, working = supply.delivery(units), units / taken_per_second(answer.estimate)
    waiting = mean(input_seconds(delivery.arriving, delivery.hidden, working))
    return Arrival(mean(delivery.reading), mean(delivery.decoding), working, waiting)


def _sources(answer: Answer, supply: Supply, catalog: Catalog) -> Iterator[SourceChoice]:
    """Yield the plan's own source, then the others."""
    cluster, size = answer.resolved.cluster, None if supply.bytes is None else mean(supply.bytes)
    needed = taken_per_second(answer.estimate) * mean(supply.unit_bytes) / mean(supply.nodes)
    places = dict.fromkeys(row.place for row in catalog.storage_tiers.values() if row.place is not None)
    tiers = [supply.tier, *(tier_of(place, cluster, catalog) for place in places if place != supply.tier.place)]
    for tier in tiers:
        given = answer.plan.data.read_gbs if tier is supply.tier else None
        bandwidth = tier_bandwidth(tier, supply.format, cluster) if given is None else given * GIGA
        line = download_bandwidth(cluster.host, catalog)
        copy = size / line if tier.place == LOCAL and size is not None else None
        yield SourceChoice(tier, bandwidth, needed, copy)


def _egress(supply: Supply, catalog: Catalog) -> Iterator[Egress]:
    """Yield what each provider takes for the data, as far as its prices are known and the data have a size."""
    if supply.bytes is None:
        return
    size, passes = mean(supply.bytes) / GIGA, 1.0 if supply.cache is not None else mean(supply.epochs)
    for provider in dict.fromkeys(row.provider for row in catalog.egress.values()):
        once, streamed = (
            transfer_price(size * times, DataLocation(provider), DataLocation(ELSEWHERE), catalog)
            for times in (1.0, passes)
        )
        if once is not None and streamed is not None:
            yield Egress(provider, mean(once.usd), mean(streamed.usd), once.words)


def _caches(answer: Answer, supply: Supply, catalog: Catalog) -> Iterator[CacheChoice]:
    cluster = answer.resolved.cluster
    disk = tier_of(LOCAL, cluster, catalog)
    memory = cluster.host_memory_bytes
    for tier in catalog.storage_tiers.values():
        if tier.cache is None or (tier.place == LOCAL and tier is not disk):
            continue
        room = cluster.host.disk_free_bytes
        if tier.place is None:
            room = None if memory is None else mean(memory) * mean(cluster.per_node)
        bandwidth = tier_bandwidth(tier, supply.format, cluster)
        whole = None if supply.bytes is None else mean(supply.bytes) / (mean(supply.nodes) * bandwidth)
        yield CacheChoice(tier, room, whole)


def _temporary(
    supply: Supply, content: Content, checkpoints: Checkpoints, catalog: Catalog
) -> Iterator[tuple[str, float]]:
    """Yield what takes room on a disk for a while: what data are made from, and a checkpoint that is being written."""
    made_from = supply.format.made_from
    if made_from is not None and supply.units is not None:
        yield "source_data", mean(supply.units) * mean(stored_bytes(catalog.data_formats[made_from], content))
    yield "checkpoint_being_written", checkpoints.bytes


def _budget(answer: Answer, supply: Supply, steps: float | None, catalog: Catalog) -> TokenBudget:
    cluster, text = answer.resolved.cluster, mean(supply.unit_bytes)
    memory, free = cluster.host_memory_bytes, cluster.host.disk_free_bytes
    return TokenBudget(
        job=None if steps is None else steps * mean(answer.estimate.computation.units_per_step),
        unique=None if supply.units is None else mean(supply.units),
        in_memory=None if memory is None else mean(memory) * mean(cluster.per_node) / text,
        on_disk=None if free is None else free / text,
        repeats=catalog.assumptions[REPEATS].value,
    )
