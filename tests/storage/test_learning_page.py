"""Every Python example of the page about learning patterns runs, and says what the page promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capacity_tui.engine.compat import HardwareAnalyzerV2, StorageEstimator
from capacity_tui.engine.compat.learning import Alias
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.machine.benchmark import all_benchmarks, benchmark_report, io_speed

PAGE = (Path(__file__).parents[2] / "docs" / "learning.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(benchmark_report, "ENOUGH_SECONDS", 0.02)
    monkeypatch.setattr(io_speed, "FILE_BYTES", 16 << 20)
    monkeypatch.setattr(io_speed, "RANDOM_SECONDS", 0.02)
    monkeypatch.setattr(all_benchmarks, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(all_benchmarks, "SMALLER", 128)


def said(name: str, capsys) -> str:
    (example,) = (each for each in EXAMPLES if name in each)
    exec(compile(example, name, "exec"), {})
    return capsys.readouterr().out


def test_the_storage_estimator_runs_as_the_page_has_it(capsys):
    lines = said("estimator.estimate_storage(", capsys).splitlines()
    assert re.fullmatch(r"Total Storage: \d+\.\d\d GB", lines[0])
    repeated = [line.rpartition(", ")[2] for line in lines[1:]]
    assert repeated == ["60.0% repeated", "42.0% repeated", "29.4% repeated", "20.6% repeated"]


def test_the_calibrated_estimator_runs_as_the_page_has_it(capsys):
    assert re.fullmatch(r"\d+\.\d\d GB\n", said("calibrate(", capsys))


@pytest.mark.usefixtures("quick")
def test_the_hardware_analyzer_runs_as_the_page_has_it(capsys):
    told = said("HardwareAnalyzerV2()", capsys)
    assert re.search(r"Performance Tier: (LOW|MEDIUM|HIGH|SERVER)\n", told)
    assert re.search(
        r"Database Write: [1-9]\d* docs/sec, SQLite [\d.]+\nDisk I/O: \d+\.\d MB/s\nNetwork Latency: \d+\.\d ms\n", told
    )
    assert re.search(r"Predicted Bottleneck: (database|memory|disk|storage): .+\n", told)


def test_a_calibrated_estimator_gives_the_run_back():
    learnt = StorageEstimator(num_nodes=2).calibrate(1000, [20_000, 2_500], storage_bytes=9e6)
    again = learnt.estimate_storage(1000)
    assert [level.unique_patterns for level in again.level_estimates] == pytest.approx([20_000, 2_500])
    assert again.total_storage_bytes == pytest.approx(9e6)
    assert learnt.estimate_storage(10_000).total_storage_bytes == pytest.approx(9e7)
    with pytest.raises(PlanError, match="cannot have stored so many"):
        StorageEstimator(num_nodes=1).calibrate(10, [1e6])


def aliases(kind: type) -> dict[str, Alias]:
    return {name: alias for name, alias in vars(kind).items() if isinstance(alias, Alias)}


@pytest.mark.usefixtures("quick")
def test_every_alias_has_a_value_of_the_answer_behind_it():
    breakdown = StorageEstimator().estimate_storage(1000)
    profile = HardwareAnalyzerV2().analyze_full()
    for owner in (breakdown, breakdown.level_estimates[0], profile, profile.benchmarks):
        values = {name: getattr(owner, name) for name in aliases(type(owner))}
        assert values
        unknown = {name for name, value in values.items() if value is None}
        assert unknown <= {"_endpoint_latency_ms", *profile.benchmarks.missing}
    assert breakdown.total_storage_gb == breakdown.total_storage_bytes / 1e9


@pytest.mark.usefixtures("quick")
def test_what_a_mongodb_does_is_not_known_where_none_was_named():
    profile = HardwareAnalyzerV2().analyze_full()
    assert profile.database_write_speed > 0
    names = ("mongo_write_speed", "mongo_read_speed", "mongo_insert_latency_ms", "mongo_query_latency_ms")
    assert [getattr(profile.benchmarks, name) for name in names] == [None] * 4
    assert profile.mongo_write_speed is None
    assert set(profile.benchmarks.missing) == set(names)
