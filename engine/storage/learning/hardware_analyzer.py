"""The hardware analyzer of hierarchical learning by the names of its guide, over the program's own answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import Score, score_machine
from capacity_tui.engine.machine import Machine, detect
from capacity_tui.engine.machine.benchmark import BenchmarkReport, facts_of, web_address
from capacity_tui.engine.storage.databases.bench import (
    BenchQuestion,
    DatabaseBench,
    benchmark_machine,
    measure_database,
)
from capacity_tui.engine.storage.learning.forecast import LearningForecast, learning_forecast
from capacity_tui.engine.storage.learning.storage_estimator import TOKENS
from capacity_tui.engine.storage.question import PatternQuestion

_MB, _GIB = 1e6, 2**30
_MONGODB = "mongodb"
_OF_MONGODB = ("mongo_write_speed", "mongo_read_speed", "mongo_insert_latency_ms", "mongo_query_latency_ms")


@dataclass(frozen=True, slots=True)
class BenchmarkResults:
    """What was measured; a megabyte is a million bytes, and what could not be measured is None.

    Attributes:
        report: every figure with its spread, and what was skipped and why.
        database: the MongoDB that was named, else an embedded SQLite.
    """

    report: BenchmarkReport
    database: DatabaseBench

    @property
    def database_version(self) -> str:
        """What held the patterns."""
        return self.database.version

    @property
    def database_write_speed(self) -> float:
        """Documents stored a second, a hundred in one go, by whatever was measured."""
        return self.database.write_per_second

    @property
    def database_read_speed(self) -> float:
        """Documents found by name a second, one after the other, likewise."""
        return self.database.query.per_second

    @property
    def mongo_write_speed(self) -> float | None:
        """Documents that a MongoDB stores a second, a hundred in one go."""
        return self._of_mongodb(self.database_write_speed)

    @property
    def mongo_read_speed(self) -> float | None:
        """Documents that a MongoDB finds by name a second, one after the other."""
        return self._of_mongodb(self.database_read_speed)

    @property
    def mongo_insert_latency_ms(self) -> float | None:
        """Mean time in which a MongoDB stores one."""
        return self._of_mongodb(self.database.insert.mean_ms)

    @property
    def mongo_query_latency_ms(self) -> float | None:
        """Mean time in which a MongoDB finds one."""
        return self._of_mongodb(self.database.query.mean_ms)

    @property
    def missing(self) -> dict[str, str]:
        """Why numbers are None, by their names."""
        reason = f"no MongoDB was named (mongo_uri); measured was {self.database_version}"
        return {name: reason for name in _OF_MONGODB if getattr(self, name) is None}

    def _of_mongodb(self, value: float) -> float | None:
        return value if self.database.question.backend == _MONGODB else None

    @property
    def disk_write_speed(self) -> float | None:
        """Megabytes a second, in sequence."""
        return self._figure("disk.write", 1 / _MB)

    @property
    def disk_read_speed(self) -> float | None:
        """Megabytes a second, in sequence."""
        return self._figure("disk.read", 1 / _MB)

    @property
    def disk_random_reads(self) -> float | None:
        """Pages read a second, one after the other."""
        return self._figure("disk.random_read", 1)

    @property
    def memory_bandwidth(self) -> float | None:
        """Megabytes a second."""
        return self._figure("memory.triad", 1 / _MB)

    @property
    def localhost_latency_ms(self) -> float | None:
        """One byte there and back on this machine."""
        return self._figure("network.loopback", 1000)

    @property
    def network_latency_ms(self) -> float | None:
        """Round trip to the address that was named; where none was, on this machine."""
        trip = self._figure("network.round_trip", 1000)
        return self.localhost_latency_ms if trip is None else trip

    def _figure(self, identifier: str, scale: float) -> float | None:
        found = self.report.find(identifier)
        return None if found is None else found.spread.median * scale


@dataclass(frozen=True, slots=True)
class HardwareProfile:
    """This machine, and what was measured on it.

    Attributes:
        machine: every fact with its source.
        score: its score and tier, by what was measured where it was.
        benchmarks: what was measured.
    """

    machine: Machine
    score: Score
    benchmarks: BenchmarkResults

    @property
    def tier(self) -> str:
        """LOW, MEDIUM, HIGH or SERVER."""
        return self.score.tier

    @property
    def cpu_cores(self) -> int:
        """Cores; logical processors where cores are not told."""
        cpu = self.machine.cpu
        return cpu.physical_cores.value or cpu.threads.value or 1

    @property
    def ram_gb(self) -> float:
        """Main memory, in GiB."""
        return (self.machine.memory.total_bytes.value or 0) / _GIB

    @property
    def disk_free_gb(self) -> float:
        """Free space of the roomiest disk, in GB."""
        return max((disk.free_bytes.value or 0 for disk in self.machine.disks), default=0) / (1000 * _MB)

    @property
    def gpus(self) -> tuple[str, ...]:
        """Names of the accelerators."""
        return tuple(gpu.name.value or gpu.vendor for gpu in self.machine.accelerators)

    @property
    def database_write_speed(self) -> float:
        """See ``BenchmarkResults``."""
        return self.benchmarks.database_write_speed

    @property
    def mongo_write_speed(self) -> float | None:
        """See ``BenchmarkResults``."""
        return self.benchmarks.mongo_write_speed

    @property
    def mongo_read_speed(self) -> float | None:
        """See ``BenchmarkResults``."""
        return self.benchmarks.mongo_read_speed

    @property
    def disk_write_speed(self) -> float | None:
        """See ``BenchmarkResults``."""
        return self.benchmarks.disk_write_speed

    @property
    def disk_read_speed(self) -> float | None:
        """See ``BenchmarkResults``."""
        return self.benchmarks.disk_read_speed

    @property
    def network_latency_ms(self) -> float | None:
        """See ``BenchmarkResults``."""
        return self.benchmarks.network_latency_ms


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
            avg_tokens_per_sample: tokens of a sample.

        Raises:
            PlanError: a number is out of its range.
        """
        question = PatternQuestion(float(dataset_size), float(avg_tokens_per_sample), chunk_size, num_nodes)
        profile = self._profile
        if profile is None:
            return learning_forecast(question, detect(), load_catalog())
        found = profile.benchmarks
        trip = (found.network_latency_ms or 0.0) / 1000 if self._url else 0.0
        return learning_forecast(question, profile.machine, load_catalog(), found.database, trip)
