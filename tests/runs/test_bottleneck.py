"""What held a run up, from what it used."""

from __future__ import annotations

import dataclasses

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.runs.profile import GpuUsage, parse_thresholds, taken_by_others, thresholds_of_tier
from capacity_tui.engine.runs.profile.bottleneck import bottleneck_of
from capacity_tui.engine.runs.profile.snapshots import GPU_NUMBERS, NUMBERS
from capacity_tui.engine.runs.profile.usage import Course, Usage


def course(value: float | None) -> Course:
    made = Course()
    made.add(value, 1.0)
    return made


def gpu(throttled=None, **numbers: float) -> GpuUsage:
    held = {"run_memory_bytes": 1e9, "memory_used_bytes": 1e9, "memory_total_bytes": 8e10, **numbers}
    return GpuUsage(0, {name: course(held.get(name)) for name in GPU_NUMBERS}, throttled or {})


def usage(*gpus: GpuUsage, **numbers: float) -> Usage:
    quiet = {
        "system_cpu_percent": 10.0, "busiest_process_percent": 20.0, "system_memory_used_bytes": 10.0,
        "system_memory_total_bytes": 100.0, "disk_read_bytes_per_second": 0.0, "disk_write_bytes_per_second": 0.0,
    }  # fmt: skip
    told = {**quiet, **numbers}
    courses = {name: course(told.get(name)) for name in NUMBERS}
    return Usage(10.0, 10, courses, None, {"cpu_seconds": 2.0}, {}, 1.0, 2.0, gpus, {})


def test_each_use_is_held_against_its_threshold():
    found = bottleneck_of(usage(system_cpu_percent=40.0, disk_write_bytes_per_second=10e6), latency_ms=25)
    assert found.scores == {
        "cpu": 0.5, "memory": pytest.approx(10 / 75), "disk": 0.2, "network": 0.25, "gpu": None
    }  # fmt: skip
    assert (found.kind, found.confidence) == ("cpu", 0.5)
    assert found.findings == ()


def test_several_can_hold_a_run_up_at_once():
    found = bottleneck_of(usage(system_cpu_percent=95.0, disk_read_bytes_per_second=80e6), latency_ms=300)
    assert found.confidence == 1
    assert {each.kind for each in found.findings} == {"cpu", "disk", "network"}


def test_one_busy_core_of_many_is_a_limit_too():
    found = bottleneck_of(usage(system_cpu_percent=6.0, busiest_process_percent=99.0))
    assert (found.kind, found.confidence) == ("cpu", 1.0)
    assert "99 %" in found.evidence


def test_what_others_use_is_said_to_be_theirs():
    def said(own: float) -> str:
        seen = dataclasses.replace(
            usage(system_cpu_percent=96.0, cpu_percent=own, busiest_process_percent=5.0), cores=(96.0, 96.0)
        )
        assert taken_by_others("cpu", seen) == (own == 10.0)
        return bottleneck_of(seen).evidence

    assert "mostly for other programs" in said(10.0)
    assert "mostly for other programs" not in said(150.0)
    read = usage(disk_read_bytes_per_second=90e6, read_bytes_per_second=1e6, write_bytes_per_second=0.0)
    assert taken_by_others("disk", read)


def test_a_larger_machine_may_do_more():
    read = usage(disk_read_bytes_per_second=100e6)
    judged = [bottleneck_of(read, thresholds=thresholds_of_tier(tier)) for tier in ("LOW", "medium", "HIGH", "SERVER")]
    assert [found.scores["disk"] for found in judged] == [1.0, 0.5, 0.1, 0.05]
    assert {found.thresholds["gpu"] for found in judged} == {90}
    with pytest.raises(CapacityError, match="there are LOW, MEDIUM, HIGH, SERVER"):
        thresholds_of_tier("huge")


def test_thresholds_can_be_given():
    wanted = parse_thresholds({"disk": "500MB/s", "cpu": "50", "network": "10 ms"})
    assert wanted == {"disk": 500e6, "cpu": 50.0, "network": 10.0}
    assert bottleneck_of(usage(disk_read_bytes_per_second=80e6), thresholds=wanted).scores["disk"] == 0.16


@pytest.mark.parametrize("given", [{"heat": "3"}, {"cpu": "0"}, {"cpu": "much"}, {"disk": "fast"}, {"gpu": "nan"}])
def test_a_threshold_that_cannot_be_is_refused(given):
    with pytest.raises(CapacityError):
        parse_thresholds(given)


@pytest.mark.parametrize(
    ("device", "host", "kind", "words"),
    [
        ({"utilization_percent": 30.0}, {"busiest_process_percent": 99.0}, "input", "does not feed them"),
        ({"utilization_percent": 30.0}, {"disk_read_bytes_per_second": 90e6}, "input", "disks read"),
        ({"utilization_percent": 30.0}, {}, "waiting", "neither CPU"),
        ({"utilization_percent": 98.0}, {"busiest_process_percent": 99.0}, "gpu_compute", "98 % busy"),
        ({"utilization_percent": 98.0, "memory_activity_percent": 85.0}, {}, "gpu_memory_bandwidth", "85 %"),
        (
            {
                "utilization_percent": 98.0,
                "throttled": {"power cap": 0.8},
                "power_watts": 690,
                "power_limit_watts": 700,
            },
            {},
            "gpu_power",
            "690 W of 700 W",
        ),
        ({"utilization_percent": 98.0, "throttled": {"thermal (hardware)": 0.5}}, {}, "gpu_heat", "50 % of the time"),
    ],
)
def test_what_a_gpu_waits_for_or_is_held_down_by(device, host, kind, words):
    found = bottleneck_of(usage(gpu(**device), **host))
    assert found.kind == kind
    assert words in found.evidence
    assert 0 < found.confidence <= 1


def test_full_gpu_memory_is_said_beside():
    found = bottleneck_of(usage(gpu(utilization_percent=95.0, memory_used_bytes=7.9e10)))
    assert [each.kind for each in found.findings] == ["gpu_compute", "gpu_memory"]


def test_a_gpu_that_others_use_does_not_count():
    found = bottleneck_of(usage(gpu(utilization_percent=99.0, run_memory_bytes=0.0), system_cpu_percent=90.0))
    assert found.kind == "cpu"
    assert found.scores["gpu"] is None


def test_nothing_known_is_no_bottleneck():
    nothing = Usage(0.0, 0, {name: Course() for name in NUMBERS}, None, {}, {}, None, None, (), {})
    found = bottleneck_of(nothing)
    assert (found.kind, found.confidence) == ("", 0.0)
    assert set(found.scores.values()) == {None}
