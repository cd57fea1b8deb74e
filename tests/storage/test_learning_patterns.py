"""What holds learning up follows from what a machine does and has, and changes where that changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import Disk, Fact, MeasuredFacts, detect, detected, missing
from capacity_tui.engine.machine.benchmark import FIGURES
from capacity_tui.engine.storage import BenchQuestion, DatabaseBench, Latency, PatternQuestion, learning_forecast
from capacity_tui.engine.storage.pattern_store import DatabaseSize
from capacity_tui.engine.storage.patterns import database_seconds, disk_seconds, memory_seconds

QUESTION = PatternQuestion(1e6, 500.0)
TB = 10**12


@pytest.fixture(scope="module")
def machine():
    """A machine with 16 GB of memory, a disk of 10 TB, and benchmarks."""
    found = detect()
    memory = replace(found.memory, total_bytes=detected(16 * 10**9, "test"))
    size = detected(10 * TB, "test")
    disk = Disk("/", "disk", "ext4", detected("NVMe", "test"), size, size, missing("test", "not told"))
    return with_rates(replace(found, memory=memory, disks=(disk,)))


def with_rates(machine, **rates: float):
    usual = {"stored_patterns": 1e4, "found_patterns": 1e5, "random_reads": 1e4, "disk_write": 1e9}
    nothing = missing("test", "not measured")
    facts = {name: Fact(value, "measured", "test") for name, value in {**usual, **rates}.items()}
    return replace(machine, benchmarked=MeasuredFacts(**{**dict.fromkeys(FIGURES, nothing), **facts}))


def forecast(machine, question=QUESTION, **more):
    return learning_forecast(question, machine, load_catalog(), **more)


def times(found):
    return {each.kind: each.seconds for each in found.times}


def test_the_database_takes_what_looking_up_and_storing_take(machine):
    found = forecast(machine)
    learnt = sum(float(level.samples) for level in found.storage.levels)
    assert found.kind == "database"
    assert found.seconds == pytest.approx(learnt / 1e5 + float(found.storage.unique) / 1e4)
    assert times(found)["memory"] == 0
    assert 0.5 < found.confidence <= 1
    assert str(found).startswith("database: ")


def test_a_database_beyond_memory_waits_for_the_disk(machine):
    small = replace(machine, memory=replace(machine.memory, total_bytes=detected(10**9, "test")))
    found = forecast(with_rates(small, random_reads=100.0))
    assert found.kind == "memory"
    assert "within" in found.evidence


def test_a_slow_disk_and_a_slow_network_are_told(machine):
    assert forecast(with_rates(machine, disk_write=1e5)).kind == "disk"
    found = forecast(machine, round_trip_seconds=0.1)
    assert found.kind == "network"
    assert times(found)["network"] == pytest.approx(0.1 * sum(float(level.samples) for level in found.storage.levels))


def test_what_does_not_fit_the_disk_is_told_first(machine):
    found = forecast(machine, replace(QUESTION, samples=1e12))
    assert found.kind == "storage"
    assert found.free_bytes == pytest.approx(found.thresholds["disk_share"] * 10 * TB)


def test_what_was_not_measured_is_assumed_of_the_tier(machine):
    found = forecast(replace(machine, benchmarked=None))
    assert {rate.origin for rate in found.rates.values()} == {"assumed"}
    assert all(found.tier in rate.source for rate in found.rates.values())
    assert {rate.origin for rate in forecast(machine).rates.values()} == {"measured"}


def test_a_database_that_was_measured_counts(machine):
    each = Latency((0.01,) * 10)
    bench = DatabaseBench(BenchQuestion(), "db", "MongoDB 8", "", 100, each, each, DatabaseSize(1, 1), 1, 1, 1)
    found = forecast(machine, database=bench)
    assert found.rates["stored_patterns"].value == pytest.approx(100)
    assert "MongoDB 8" in found.rates["stored_patterns"].source
    assert found.seconds > forecast(machine).seconds


@given(st.floats(1e3, 1e12), st.floats(1.0, 1e3))
def test_more_patterns_never_take_less(learnt, times_more):
    more = learnt * times_more
    assert database_seconds(more, 1e5, more / 2, 1e4) >= database_seconds(learnt, 1e5, learnt / 2, 1e4)
    assert memory_seconds(more, 1e9, more * 100, 1e4) >= memory_seconds(learnt, 1e9, learnt * 100, 1e4)
    assert disk_seconds(2, more, 1e9) >= disk_seconds(2, learnt, 1e9)


def test_a_bench_is_printed_in_a_line_or_two():
    each = Latency((0.001,) * 10_000)
    bench = DatabaseBench(BenchQuestion(), "db", "SQLite 3", "", 100, each, each, DatabaseSize(1, 1), 1, 1, 1)
    assert len(repr(bench)) < 500
