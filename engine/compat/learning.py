"""What the guide of hierarchical learning calls storage estimator and hardware analyzer, as aliases of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Generic, TypeVar, cast, overload

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import Score, score_machine
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.machine import Machine, detect
from capacity_tui.engine.machine.benchmark import BenchmarkReport, facts_of, web_address
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.storage import (
    BenchQuestion,
    DatabaseBench,
    LearningForecast,
    PatternLevel,
    PatternQuestion,
    PatternStorage,
    benchmark_machine,
    learning_forecast,
    measure_database,
    pattern_storage,
)
from capacity_tui.engine.units import GIGA, MEGA

T = TypeVar("T")


class Alias(Generic[T]):
    """The value at a path of attributes.

    Args:
        path: names with dots between them, from the object that has the alias.
    """

    def __init__(self, path: str) -> None:
        self._value = attrgetter(path)

    @overload
    def __get__(self, owner: None, kind: type) -> Alias[T]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> T: ...

    def __get__(self, owner: object | None, kind: type) -> Alias[T] | T:
        """Return the value of an object; on the class itself, the alias."""
        return self if owner is None else self.value(owner)

    def value(self, owner: object) -> T:
        return cast("T", self._value(owner))


class Amount(Alias[float]):
    """A number at a path of attributes.

    Args:
        path: as of any alias.
        unit: how much of it is one in the unit of the alias.
    """

    def __init__(self, path: str, unit: float = 1.0) -> None:
        super().__init__(path)
        self._unit = unit

    def value(self, owner: object) -> float:
        return float(self._value(owner)) / self._unit


TOKENS = 500  # Tokens of a sample, where nobody says


@dataclass(frozen=True, slots=True)
class LevelEstimate:
    """What one level of patterns takes; a megabyte is a million bytes, and repeated patterns are counted each time.

    Attributes:
        level: all that is known of it.
    """

    level: PatternLevel

    node_name = Alias[str]("level.name")
    total_patterns = Amount("level.samples")
    unique_patterns = Amount("level.unique.value")
    deduplication_rate = Amount("level.deduplication")
    storage_bytes = Amount("level.bytes.value")
    storage_mb = Amount("level.bytes.value", MEGA)
    storage_gb = Amount("level.bytes.value", GIGA)

    def frequency(self, rank: float) -> float:
        """Return how often the pattern of a rank occurs, by Zipf's law."""
        return float(self.level.frequency(rank))


@dataclass(frozen=True, slots=True)
class StorageBreakdown:
    """What all levels take, with ``raw_storage_bytes`` before what the store adds.

    Attributes:
        storage: the whole answer, with ranges and with what the law expects.
    """

    storage: PatternStorage
    level_estimates: tuple[LevelEstimate, ...]

    total_storage_bytes = Amount("storage.total_bytes.value")
    total_storage_mb = Amount("storage.total_bytes.value", MEGA)
    total_storage_gb = Amount("storage.total_bytes.value", GIGA)
    total_unique_patterns = Amount("storage.unique")
    raw_storage_bytes = Amount("storage.raw_bytes")


class StorageEstimator:
    """Estimates what patterns of a corpus take to keep.

    Args:
        num_nodes: levels of the hierarchy.
        chunk_size: tokens of a pattern of the first level.
        zipf_alpha: exponent of the law of frequencies.
        overhead: what the store adds, as a share of the patterns; by default what stores usually add.
        deduplication: share of repeated patterns by level; by default the rule of hierarchical learning.
    """

    def __init__(
        self,
        num_nodes: int = 4,
        chunk_size: int = 15,
        zipf_alpha: float = 1.0,
        overhead: float | None = None,
        deduplication: Sequence[float] = (),
    ) -> None:
        self._question = PatternQuestion(
            samples=1.0,
            tokens=float(TOKENS),
            chunk=chunk_size,
            levels=num_nodes,
            alpha=(zipf_alpha,),
            deduplication=tuple(deduplication),
            overhead=overhead,
        )
        self._question.check()

    def estimate_storage(self, num_samples: float, avg_tokens_per_sample: float = TOKENS) -> StorageBreakdown:
        """Return what a corpus takes; raises PlanError if a number is out of its range."""
        asked = replace(self._question, samples=float(num_samples), tokens=float(avg_tokens_per_sample))
        storage = pattern_storage(asked, load_catalog())
        return StorageBreakdown(storage, tuple(LevelEstimate(level) for level in storage.levels))

    def calibrate(
        self,
        num_samples: float,
        unique_patterns: Sequence[float],
        storage_bytes: float | None = None,
        avg_tokens_per_sample: float = TOKENS,
    ) -> StorageEstimator:
        """Return an estimator that gives what a run came to, and larger corpora likewise.

        Args:
            num_samples: that were learnt.
            unique_patterns: different ones that were stored, by level from the first on.
            storage_bytes: what they take on disk; None where that is not known.
            avg_tokens_per_sample: tokens of a sample of the run.

        Raises:
            PlanError: more patterns were stored than there are, or a number is out of its range.
        """
        ran = self.estimate_storage(num_samples, avg_tokens_per_sample)
        for level, stored in zip(ran.level_estimates, unique_patterns, strict=False):
            if not 0 < stored <= level.total_patterns:
                detail = f"{level.node_name}: {stored:g} of {level.total_patterns:g}"
                raise PlanError("cannot have stored so many patterns", detail, "give different patterns by level")
        learnt = zip(ran.level_estimates, unique_patterns, strict=False)
        deduplication = tuple(1 - stored / level.total_patterns for level, stored in learnt)
        shared = replace(self._question, deduplication=deduplication or self._question.deduplication)
        calibrated = StorageEstimator._of(shared)
        if storage_bytes is None:
            return calibrated
        raw = calibrated.estimate_storage(num_samples, avg_tokens_per_sample).raw_storage_bytes
        return StorageEstimator._of(replace(shared, overhead=max(0.0, storage_bytes / raw - 1)))

    @classmethod
    def _of(cls, question: PatternQuestion) -> StorageEstimator:
        estimator = cls()
        estimator._question = question
        return estimator


_MONGODB = "mongodb"
_GIB, _MILLI = 2.0**30, 1e-3


class _Measured(Alias[float | None]):
    """The median of a benchmark's figure by its name, in a unit; None where it was not measured.

    Args:
        figure: its name.
        unit: how much of the figure is one in the unit of the alias.
    """

    def __init__(self, figure: str, unit: float) -> None:
        super().__init__("report")
        self._figure = figure
        self._unit = unit

    def value(self, owner: object) -> float | None:
        measured = cast("BenchmarkResults", owner).report.find(self._figure)
        return None if measured is None else measured.spread.median / self._unit


class _OfMongoDb(Alias[float | None]):
    """A speed of the database that was measured; None where that is no MongoDB."""

    def value(self, owner: object) -> float | None:
        is_mongodb = cast("BenchmarkResults", owner).database.question.backend == _MONGODB
        return super().value(owner) if is_mongodb else None


@dataclass(frozen=True, slots=True)
class BenchmarkResults:
    """What was measured: documents a second, megabytes (a million bytes) a second, milliseconds.

    Attributes:
        report: every figure with its spread, and what was skipped and why.
        database: the MongoDB that was named, else an embedded SQLite.
    """

    report: BenchmarkReport
    database: DatabaseBench

    database_version = Alias[str]("database.version")
    database_write_speed = Alias[float]("database.write_per_second")
    database_read_speed = Alias[float]("database.query.per_second")
    mongo_write_speed = _OfMongoDb("database.write_per_second")
    mongo_read_speed = _OfMongoDb("database.query.per_second")
    mongo_insert_latency_ms = _OfMongoDb("database.insert.mean_ms")
    mongo_query_latency_ms = _OfMongoDb("database.query.mean_ms")
    disk_write_speed = _Measured("disk.write", MEGA)
    disk_read_speed = _Measured("disk.read", MEGA)
    disk_random_reads = _Measured("disk.random_read", 1)
    memory_bandwidth = _Measured("memory.triad", MEGA)
    localhost_latency_ms = _Measured("network.loopback", _MILLI)
    _endpoint_latency_ms = _Measured("network.round_trip", _MILLI)

    @property
    def network_latency_ms(self) -> float | None:
        """Round trip to the address that was named; where none was, on this machine."""
        trip = self._endpoint_latency_ms
        return self.localhost_latency_ms if trip is None else trip

    @property
    def missing(self) -> dict[str, str]:
        """Why speeds of a MongoDB are None, by their names."""
        reason = f"no MongoDB was named (mongo_uri); measured was {self.database_version}"
        names = [name for name, alias in vars(BenchmarkResults).items() if isinstance(alias, _OfMongoDb)]
        return {name: reason for name in names if getattr(self, name) is None}


@dataclass(frozen=True, slots=True)
class HardwareProfile:
    """This machine, and what was measured on it; ``tier`` is LOW, MEDIUM, HIGH or SERVER.

    Attributes:
        machine: every fact with its source.
        score: its score and tier, by what was measured where it was.
        benchmarks: what was measured.
    """

    machine: Machine
    score: Score
    benchmarks: BenchmarkResults

    tier = Alias[str]("score.tier")
    database_write_speed = Alias[float]("benchmarks.database_write_speed")
    mongo_write_speed = Alias["float | None"]("benchmarks.mongo_write_speed")
    mongo_read_speed = Alias["float | None"]("benchmarks.mongo_read_speed")
    disk_write_speed = Alias["float | None"]("benchmarks.disk_write_speed")
    disk_read_speed = Alias["float | None"]("benchmarks.disk_read_speed")
    network_latency_ms = Alias["float | None"]("benchmarks.network_latency_ms")

    @property
    def cpu_cores(self) -> int:
        """Cores; logical processors where cores are not known."""
        cpu = self.machine.cpu
        return cpu.physical_cores.value or cpu.threads.value or 1

    @property
    def ram_gb(self) -> float:
        """Main memory, in GiB."""
        return (self.machine.memory.total_bytes.value or 0) / _GIB

    @property
    def disk_free_gb(self) -> float:
        """Free space of the roomiest disk, in GB."""
        return max((disk.free_bytes.value or 0 for disk in self.machine.disks), default=0) / GIGA

    @property
    def gpus(self) -> tuple[str, ...]:
        """Names of the accelerators."""
        return tuple(gpu.name.value or gpu.vendor for gpu in self.machine.accelerators)


class HardwareAnalyzerV2:
    """Detects this machine, measures it, and says what would hold learning up.

    Args:
        mongo_uri: a MongoDB to measure; without one an embedded SQLite stands for the database.
        api_url: an address whose round trip is measured, through which every pattern is learnt; without one no
            connection leaves this machine.
        folder: the disk to measure; that of temporary files by default.

    Raises:
        HardwareError: the address is none.
    """

    def __init__(self, mongo_uri: str = "", api_url: str | None = None, folder: Path | None = None) -> None:
        if api_url is not None:
            web_address(api_url)
        self._question = BenchQuestion(_MONGODB if mongo_uri else "sqlite", uri=mongo_uri, folder=folder)
        self._url = api_url
        self._profile: HardwareProfile | None = None

    def analyze_full(self) -> HardwareProfile:
        """Detect this machine and measure it, for about ten seconds; nothing is kept.

        Raises:
            MissingPartError: a MongoDB is named, and pymongo is not installed.
            StorageError: the database cannot be used.
        """
        machine = detect()
        database = measure_database(self._question)
        report = benchmark_machine(machine, self._question.folder, self._url)
        facts = facts_of((report,), machine, "analyze_full")
        measured = replace(machine, benchmarked=facts)
        results = BenchmarkResults(report, database)
        self._profile = HardwareProfile(measured, score_machine(measured, load_catalog()), results)
        return self._profile

    def predict_bottleneck(
        self, dataset_size: float, chunk_size: int = 15, num_nodes: int = 4, avg_tokens_per_sample: float = TOKENS
    ) -> LearningForecast:
        """Return what would hold learning up; what was not measured is assumed of the machine's tier.

        Args:
            dataset_size: samples.
            chunk_size: tokens of a pattern of the first level.
            num_nodes: levels.

        Raises:
            PlanError: a number is out of its range.
        """
        question = PatternQuestion(float(dataset_size), float(avg_tokens_per_sample), chunk_size, num_nodes)
        profile = self._profile
        if profile is None:
            return learning_forecast(question, detect(), load_catalog())
        measured = profile.benchmarks
        trip = (measured.network_latency_ms or 0.0) * _MILLI if self._url else 0.0
        return learning_forecast(question, profile.machine, load_catalog(), measured.database, trip)
