"""What holds the learning of patterns up on a machine: database, memory, disk or network, before anything is learnt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

import numpy as np

from capacity_tui.engine.catalog import Catalog, parse_shipped
from capacity_tui.engine.cluster import Tier, roomiest_disk, score_machine
from capacity_tui.engine.estimate import equation
from capacity_tui.engine.machine import Fact, Machine, MeasuredFacts, assumed
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage import DatabaseBench
from capacity_tui.engine.storage.pattern_store import PatternQuestion
from capacity_tui.engine.storage.patterns import PatternStorage, pattern_storage
from capacity_tui.engine.units import format_bytes, format_count, format_percent, format_seconds

FILE = "learning.yaml"
_SOURCE = "one pass over all patterns, each resource by itself"
_RATES = ("stored_patterns", "found_patterns", "random_reads", "disk_write")


@dataclass(frozen=True, slots=True)
class ResourceTime:
    """How long one resource would take if nothing else took any time."""

    kind: str  # ``database``, ``memory``, ``disk`` or ``network``
    seconds: float  # that time
    evidence: str  # what it does in it, in words


@dataclass(frozen=True, slots=True)
class LearningForecast:
    """What holds learning up; as text the kind, with what it shows by."""

    kind: str  # ``storage`` where the disk cannot hold the patterns; else the resource that takes longest
    confidence: float  # that resource's share of the times of all, from 0 to 1
    evidence: str  # by what it shows, in words
    times: tuple[ResourceTime, ...]  # of every resource, the longest first
    storage: PatternStorage  # what the patterns take
    free_bytes: float | None  # of the disk that they may fill; None where unknown
    tier: Tier  # of the machine
    thresholds: Mapping[str, float]  # by which it was judged, those of its tier
    rates: Mapping[str, Fact[float]]  # what was measured, or is assumed of the tier

    @property
    def seconds(self) -> float:
        """The time of the resource that takes longest: no learning is faster."""
        return self.times[0].seconds

    def __str__(self) -> str:
        return f"{self.kind}: {self.evidence}"


def learning_forecast(
    question: PatternQuestion,
    machine: Machine,
    catalog: Catalog,
    database: DatabaseBench | None = None,
    round_trip_seconds: float = 0.0,
) -> LearningForecast:
    """Return what would hold the learning of a corpus up on a machine.

    Args:
        question: one size of a corpus, and how it is cut into patterns.
        machine: what was detected, and what benchmarks found.
        database: a measured one that holds the patterns; None for an embedded one as the machine was measured with.
        round_trip_seconds: to what learns them, one for each pattern; 0 where that is this process.

    Raises:
        PlanError: a number of the question is out of its range.
    """
    storage = pattern_storage(question, catalog)
    tier = score_machine(machine, catalog).tier
    known = _tiers()[tier]
    thresholds = {name: value for name, value in known.items() if name not in _RATES}
    rates = {name: _rate(machine.benchmarked, name, known[name], tier) for name in _RATES} | _rates_of(database)
    times = _times(storage, machine, {name: fact.value or known[name] for name, fact in rates.items()}, thresholds)
    asked = _learnt(storage)
    over_network = ResourceTime(
        "network",
        float(network_seconds(asked, round_trip_seconds)),
        f"{format_count(asked)} round trips of {format_seconds(round_trip_seconds)}",
    )
    ordered = sorted((*times, *((over_network,) if round_trip_seconds else ())), key=lambda entry: -entry.seconds)
    first = ordered[0]
    kind, evidence = first.kind, f"{format_seconds(first.seconds)}, {first.evidence}"
    confidence = first.seconds / max(sum(alternative.seconds for alternative in ordered), 1e-9)
    disk = roomiest_disk(machine)
    free = None if disk is None else float(disk.free_bytes.value or 0) * thresholds["disk_share"]
    total = float(storage.total_bytes.value)
    if free is not None and total > free:
        kind, confidence = "storage", 1.0
        evidence = f"patterns take {format_bytes(total)}, and the disk has room for {format_bytes(free)}"
    return LearningForecast(kind, confidence, evidence, tuple(ordered), storage, free, tier, thresholds, rates)


@equation(
    "seconds = learnt / find_rate + new / store_rate",
    unit="s",
    source=_SOURCE,
    learnt="patterns, repeated ones as often as they are",
    find_rate="patterns found a second, one after the other",
    new="different patterns",
    store_rate="patterns stored a second, one after the other",
)
def database_seconds(learnt: Number, find_rate: Number, new: Number, store_rate: Number) -> Number:
    """Time of the database: every pattern is looked up, and a new one stored."""
    return learnt / find_rate + new / store_rate


@equation(
    "seconds = learnt · max(0, 1 - room / database) / random_reads",
    unit="s",
    source=_SOURCE,
    learnt="patterns that are looked up, any page of the database being as likely",
    room=("bytes of main memory that it may fill", "B"),
    database=("bytes of all of it", "B"),
    random_reads="pages read a second, one after the other",
)
def memory_seconds(learnt: Number, room: Number, database: Number, random_reads: Number) -> Number:
    """Time of reads that memory does not spare, where the database is larger than its room there."""
    return learnt * np.maximum(0.0, 1.0 - room / database) / random_reads


@equation(
    "seconds = times · database / disk_write",
    unit="s",
    source="a log first, then the pages themselves",
    times="how often a byte is written",
    database=("bytes of all of it", "B"),
    disk_write=("what the disk writes, B/s", "B/s"),
)
def disk_seconds(times: Number, database: Number, disk_write: Number) -> Number:
    """Time of writing the database."""
    return times * database / disk_write


@equation(
    "seconds = learnt · round_trip",
    unit="s",
    source=_SOURCE,
    learnt="patterns that are looked up",
    round_trip=("seconds there and back", "s"),
)
def network_seconds(learnt: Number, round_trip: Number) -> Number:
    """Time on the way to a database elsewhere, one question after the other."""
    return learnt * round_trip


def _times(
    storage: PatternStorage, machine: Machine, rates: Mapping[str, float], thresholds: Mapping[str, float]
) -> tuple[ResourceTime, ...]:
    learnt, new = _learnt(storage), float(storage.unique)
    total = float(storage.total_bytes.value)
    room = float(machine.memory.total_bytes.value or 0) * thresholds["memory_share"]
    database = database_seconds(learnt, rates["found_patterns"], new, rates["stored_patterns"])
    memory = memory_seconds(learnt, room, total, rates["random_reads"])
    disk = disk_seconds(thresholds["written"], total, rates["disk_write"])
    inside = format_percent(min(1.0, room / total))
    return (
        ResourceTime(
            "database", float(database), f"{format_count(learnt)} patterns looked up, {format_count(new)} of them new"
        ),
        ResourceTime("memory", float(memory), f"{inside} of {format_bytes(total)} within {format_bytes(room)} of it"),
        ResourceTime("disk", float(disk), f"{format_bytes(total)} written"),
    )


def _learnt(storage: PatternStorage) -> float:
    return float(sum(level.samples for level in storage.levels))


def _rates_of(database: DatabaseBench | None) -> dict[str, Fact[float]]:
    if database is None:
        return {}
    measured = {"stored_patterns": database.insert.per_second, "found_patterns": database.query.per_second}
    return {name: Fact(rate, "measured", f"{database.version} in {database.place}") for name, rate in measured.items()}


def _rate(measured: MeasuredFacts | None, name: str, usual: float, tier: str) -> Fact[float]:
    """Return a rate as measured, else what machines of the tier are assumed to have."""
    known = assumed(usual, f"machines of the tier {tier}, profiles/{FILE}")
    return known if measured is None else cast("Fact[float]", getattr(measured, name)).or_else(known)


@cache
def _tiers() -> Mapping[str, Mapping[str, float]]:
    rows = parse_shipped(FILE)
    return {tier: {name: float(value) for name, value in row.items()} for tier, row in rows.items()}
