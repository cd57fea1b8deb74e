"""Scores: ordered as people would order machines, explained part by part; cooling judged by evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import replay

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import score_machine
from capacity_tui.engine.cluster.assessment import points_between
from capacity_tui.engine.machine import Fact, MeasuredFacts, detect, detected, missing
from capacity_tui.engine.machine.benchmark import FIGURES
from capacity_tui.engine.machine.benchmark.benchmark_report import judge_cooling
from capacity_tui.engine.machine.machine import unknown_accelerator
from capacity_tui.engine.machine.vendors import GpuSample


@pytest.fixture
def machine(tmp_path, without_nvml):
    return lambda name: detect(host=replay(name, tmp_path / name))


def with_gpus(machine, identifier: str, count: int):
    gpu = replace(
        unknown_accelerator(0, "NVIDIA", "test", "not told"),
        name=detected(identifier, "test"),
        catalogue_id=detected(identifier, "test"),
        visible=detected(True, "test"),
    )
    return replace(machine, accelerators=tuple(replace(gpu, index=index) for index in range(count)))


def test_machines_are_ordered_as_people_would_order_them(machine):
    catalog = load_catalog()
    server, laptop = machine("epyc_server"), machine("hybrid_laptop")
    scores = [
        score_machine(found, catalog)
        for found in (
            laptop,
            with_gpus(laptop, "rtx-4060-laptop", 1),
            with_gpus(laptop, "rtx-4090", 1),
            with_gpus(server, "h100-sxm-80gb", 1),
            with_gpus(server, "h100-sxm-80gb", 8),
        )
    ]
    values = [score.value for score in scores]
    assert values == sorted(values)
    assert [score.tier for score in scores] == ["LOW", "MEDIUM", "HIGH", "SERVER", "SERVER"]
    assert scores[-1].verdict == "excellent for training large language models"


def test_a_score_shows_its_rule(machine):
    score = score_machine(machine("hybrid_laptop"), load_catalog())
    assert "SERVER from 8" in score.rule
    assert score.weakest in {part.name for part in score.parts}
    missing_part = next(part for part in score.parts if part.id == "device_memory")
    assert missing_part.value_text() == "n/a (no device beside the CPU)"


def test_a_measured_disk_counts(machine):
    found = machine("hybrid_laptop")
    slow, fast = (score_machine(benchmarked(found, disk_read=rate), load_catalog()).value for rate in (1e8, 1.4e10))
    assert slow < fast


def test_a_benchmark_decides_where_there_is_one(machine):
    """Arithmetic, bandwidth, disk, latency and database of a machine are scored as measured, and may move its tier."""
    found, catalog = machine("hybrid_laptop"), load_catalog()
    told = {part.id: part for part in score_machine(found, catalog).parts}
    assert told["database"].points is None
    assert "detect --benchmark" in told["database"].reason
    slow = dict.fromkeys(FIGURES, 1.0) | {"loopback_seconds": 1.0, "fp32_flops": 1e9, "memory_bandwidth": 1e9}
    scored = score_machine(benchmarked(found, **slow), catalog)
    parts = {part.id: part for part in scored.parts}
    for name in ("arithmetic", "bandwidth", "disk", "random_reads", "round_trips", "database"):
        assert parts[name].known.startswith("measured here"), name
    assert parts["arithmetic"].points < told["arithmetic"].points
    assert parts["bandwidth"].points < told["bandwidth"].points
    assert scored.tier == "LOW"


def benchmarked(machine, **figures: float):
    nothing = missing("test", "not measured")
    facts = {name: Fact(figures[name], "measured", "test") if name in figures else nothing for name in FIGURES}
    return replace(machine, benchmarked=MeasuredFacts(**facts))


@given(st.floats(1, 1e20), st.floats(1, 1e20))
def test_more_never_scores_less(first, second):
    anchors = ((1e3, 1.0), (1e6, 4.0), (1e9, 10.0))
    low, high = sorted((first, second))
    assert 1 <= points_between(anchors, low) <= points_between(anchors, high) <= 10


def moment(percent: float, celsius: float, *throttle: str) -> tuple[GpuSample, ...]:
    no = missing("test", "not told")
    return (GpuSample(0, detected(percent, "test"), no, no, no, detected(celsius, "test"), detected(throttle, "test")),)


@pytest.mark.parametrize(
    ("samples", "verdict", "evidence"),
    [
        ([moment(99, 70)] * 12, "adequate", "up to 70 of 83 °C over 12 samples"),
        ([moment(99, 70, "power cap")] * 12, "adequate", "the power limit held the clock down in 100%"),
        ([moment(99, 80)] * 12, "at its limit", "up to 80 of 83"),
        ([moment(99, 82, "thermal (software)")] * 12, "inadequate", "heat held the clock down in 100%"),
        ([moment(5, 82, "thermal (software)")] * 12, "not known", "0 samples under load"),
    ],
)
def test_cooling_is_judged_by_evidence(machine, samples, verdict, evidence):
    (cooling,) = judge_cooling(with_gpus(machine("hybrid_laptop"), "rtx-4090", 1), samples)
    assert cooling.verdict == verdict
    assert evidence in cooling.evidence
