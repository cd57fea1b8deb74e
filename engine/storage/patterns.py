"""What a store of patterns comes to, by level and in all; and what holds learning them up on a machine, ahead of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import cast

import numpy as np

from capacity_tui.engine.catalog import Catalog, parse_shipped
from capacity_tui.engine.cluster import Tier, roomiest_disk, score_machine
from capacity_tui.engine.estimate import formula
from capacity_tui.engine.machine import Fact, Machine, MeasuredFacts, assumed
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage import DatabaseBench
from capacity_tui.engine.storage.fitting import (
    deduplication_at_level,
    deduplication_of_length,
    pattern_bytes,
    pieces_of,
    stored_bytes,
    unique_patterns,
)
from capacity_tui.engine.storage.pattern_store import Known, PatternQuestion, held_at
from capacity_tui.engine.storage.zipf import (
    distinct_in_large_samples,
    expected_distinct,
    frequency_at_rank,
    kinds_for_distinct,
    most_frequent,
)
from capacity_tui.engine.units import format_bytes, format_count, format_percent, format_seconds

GROWTH = (1e2, 1e10, 9)  # Samples from, to, and how many sizes between them a table of growth has
DISAGREES = 0.25  # Difference of rule and law, as a share of the law's number, from which on it is reported


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number with the least and the most it may be."""

    value: Number
    low: Number
    high: Number


@dataclass(frozen=True, slots=True)
class PatternLevel:
    """One level of patterns; all numbers broadcast with the sizes of the corpus."""

    name: str  # ``node0`` and so on
    holds: str  # what its patterns are in a text
    samples: Number  # patterns that are learnt there, repeated ones as often as they are
    deduplication: float  # share of them that repeat an earlier one, by the rule
    unique: Bounds  # different ones, by the rule; from the lesser to the greater of rule and law
    bytes: Bounds  # what they take in the store
    raw_bytes: Number  # their documents without what the store adds
    pattern_bytes: Number  # one document
    alpha: float  # exponent of the law
    kinds: Number  # how many different ones there could be
    expected: Number  # different ones expected under the law, exactly
    expected_closed: Number  # the same in closed form, which holds for large samples
    most_frequent: Number  # how often the most frequent one occurs under the law

    @property
    def disagreement(self) -> Number:
        """How far the rule's number of different patterns is above the law's, as a share of that."""
        return self.unique.value / self.expected - 1.0

    @property
    def agreeing_kinds(self) -> Number:
        """Kinds with which the law would give what the rule does; infinite where none would do."""
        return kinds_for_distinct(self.unique.value, self.samples, self.alpha)

    def frequency(self, rank: Number) -> Number:
        """Return how often the pattern of a rank occurs under the law."""
        return frequency_at_rank(self.most_frequent, rank, self.alpha)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Texts cut in one way: mean tokens of a piece, how many there are, and what is kept of them."""

    kind: str  # ``chunks`` or ``sentences``
    tokens: Number
    pieces: Number  # how many there are
    unique: Number  # different ones, by the rule between its levels
    tokens_kept: Number  # share of the tokens that are stored
    bytes: Number  # what the different ones take in the store


@dataclass(frozen=True, slots=True)
class PatternStorage(ShownInNotebooks):
    """What a store of patterns comes to."""

    question: PatternQuestion
    known: Known  # what holds for it, given or assumed
    levels: tuple[PatternLevel, ...]  # from chunks on
    total_bytes: Bounds  # all levels in the store
    raw_bytes: Number  # their documents without what the store adds
    repeated_bytes: Number  # the documents if every repetition were stored again
    segmentation: tuple[Pieces, ...]  # chunks beside sentences; empty where a chunk is a single token

    @property
    def unique(self) -> Number:
        """Different patterns of all levels, by the rule."""
        return sum((level.unique.value for level in self.levels), 0.0)

    @property
    def expected(self) -> Number:
        """Different patterns of all levels that are expected under the law."""
        return sum((level.expected for level in self.levels), 0.0)

    @property
    def disagreement(self) -> Number:
        """How far the rule's number of different patterns is above the law's, as a share of that."""
        return self.unique / self.expected - 1.0


def pattern_storage(question: PatternQuestion, catalog: Catalog) -> PatternStorage:
    """Return what the patterns of a corpus take to keep, for one size of it or for many at once.

    Raises:
        PlanError: a number is out of its range.
    """
    question.check()
    known = Known(question, catalog)
    levels = tuple(_levels(known))
    return PatternStorage(
        question,
        known,
        levels,
        Bounds(*(sum((getattr(level.bytes, end) for level in levels), 0.0) for end in ("value", "low", "high"))),
        sum((level.raw_bytes for level in levels), 0.0),
        sum((level.samples * level.pattern_bytes for level in levels), 0.0),
        tuple(_segmentation(known)) if np.all(np.asarray(question.chunk) >= 2) else (),
    )


def growth(question: PatternQuestion, catalog: Catalog, samples: Number | None = None) -> PatternStorage:
    """Return the same for corpora of many sizes, by default from a hundred samples to ten billion."""
    return pattern_storage(replace(question, samples=np.geomspace(*GROWTH) if samples is None else samples), catalog)


def _levels(known: Known) -> Iterator[PatternLevel]:
    question = known.question
    samples = np.asarray(question.samples, dtype=float)
    below: Number = np.asarray(question.tokens, dtype=float)
    chunk = question.chunk
    for number in range(question.levels):
        pieces = pieces_of(below, chunk)
        occurrences = samples * pieces
        deduplication = _deduplication(known, number)
        unique = unique_patterns(occurrences, deduplication)
        alpha = known.alpha(number)
        kinds = known.kinds(number, occurrences, alpha)
        expected = expected_distinct(occurrences, alpha, kinds)
        bounds = _unique_bounds(known, number, occurrences, unique, expected)
        result = _pattern_bytes(known, number, below / pieces)
        low, high = known.overhead_range
        yield PatternLevel(
            f"node{number}",
            held_at(number),
            occurrences,
            deduplication,
            bounds,
            Bounds(
                stored_bytes(unique, result.value, known.overhead),
                stored_bytes(bounds.low, result.low, low),
                stored_bytes(bounds.high, result.high, high),
            ),
            unique * result.value,
            result.value,
            alpha,
            kinds,
            expected,
            distinct_in_large_samples(occurrences, alpha, kinds),
            most_frequent(occurrences, alpha, kinds),
        )
        below, chunk = pieces, question.fan_in or np.maximum(question.chunk, 2)


def _deduplication(known: Known, number: int) -> float:
    given = known.question.deduplication
    if number < len(given):
        return given[number]
    first, beyond = (given[-1], number - len(given) + 1) if given else (known.first_deduplication, number)
    return float(deduplication_at_level(first, known.decay, float(beyond)))


def _unique_bounds(known: Known, number: int, occurrences: Number, unique: Number, expected: Number) -> Bounds:
    """Return the rule's number with a range that holds the law's for every exponent that may be."""
    others = set(known.alpha_range(number)) - {known.alpha(number)}
    laws = (expected_distinct(occurrences, alpha, known.kinds(number, occurrences, alpha)) for alpha in others)
    everything = np.stack(np.broadcast_arrays(unique, expected, *laws))
    return Bounds(unique, np.min(everything, axis=0), np.max(everything, axis=0))


def _pattern_bytes(known: Known, number: int, elements: Number) -> Bounds:
    given = known.question.pattern_bytes
    if given:
        result = given[min(number, len(given) - 1)]
        return Bounds(result, result, result)
    symbol = "reference-bytes" if number else "token-bytes"
    record, element = known.assumed("record-bytes").value, known.assumed("element-bytes").value
    texts = (known.assumed(symbol).value, *known.range_of(symbol))
    return Bounds(*(pattern_bytes(record, elements, element, text) for text in texts))


def _segmentation(known: Known) -> Iterator[Pieces]:
    question = known.question
    for kind, length in (("chunks", question.chunk), ("sentences", known.assumed("sentence-tokens").value)):
        share = deduplication_of_length(known.first_deduplication, known.decay, length, question.chunk)
        pieces = np.asarray(question.samples, dtype=float) * pieces_of(question.tokens, length)
        unique = unique_patterns(pieces, share)
        result = _pattern_bytes(known, 0, np.minimum(length, question.tokens))
        yield Pieces(kind, length, pieces, unique, 1.0 - share, stored_bytes(unique, result.value, known.overhead))


FILE = "learning.yaml"
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


database_seconds = formula()  # Time of the database: every pattern is looked up, and a new one stored

# Time of reads that memory does not spare, where the database is larger than its room there.
memory_seconds = formula()
disk_seconds = formula()
network_seconds = formula()  # Time on the way to a database elsewhere, one question after the other


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
