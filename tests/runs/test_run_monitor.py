"""What a run comes to beside its plan: time left, why it differs, and each trouble told once."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import Counters, Sample, detected, missing
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.runs import alarm_line, compared_rows, machine_lines, progress_line
from capacity_tui.engine.runs import TreeSample
from capacity_tui.engine.runs.logs import RunCurve
from capacity_tui.engine.runs.logs.line_reader import LogEntry
from capacity_tui.engine.runs.monitor import RunGauges, RunMonitor
from capacity_tui.engine.runs.monitor.alarms import MOST_SAMPLES, Rows, RunSamples, Watch, detectors_of
from capacity_tui.engine.runs.monitor.comparison import compare, measured, reasons
from capacity_tui.engine.runs.monitor.run_monitor import seconds_left
from capacity_tui.engine.runs.processes import Observation
from capacity_tui.engine.solve import answer

DETECTORS = load_catalog().detectors
LIMITS = DETECTORS["difference"].thresholds
GIB = 2**30
NONE = missing("test", "not given")


@pytest.fixture(scope="module")
def planned():
    return answer(
        plan_from_data(
            {
                "task": "train",
                "model": {"name": "llama-3.2-1b"},
                "training": {"seq_len": 2048, "micro_batch": 2, "global_batch": 64, "steps": 1000, "precision": "bf16"},
                "parallelism": {"dp": 4},
                "hardware": {"name": "a100-sxm-80gb", "devices": 4},
            }
        )
    )


def gpu(index, *, busy=97.0, used=40 * GIB, watts=380.0, throttle=(), degrees=60.0):
    readings = (busy, int(used), 80 * GIB, watts, degrees, throttle)
    told = (detected(reading, "t") for reading in readings)
    return GpuSample(index, *told, power_limit_watts=detected(400.0, "t"))


def observation(at, gpus, *, cores=1.0, rss=4 * GIB, own=()):
    counters = Counters(*[None] * len(Counters.__dataclass_fields__))
    run = TreeSample(at, (), detected(int(rss), "t"), NONE, detected(1.0, "t"), detected(100 * cores, "t"), *[NONE] * 5)
    facts = dict.fromkeys(Sample.__dataclass_fields__, NONE)
    system = Sample(**facts | {"at_seconds": at, "gpus": detected(tuple(gpus), "t"), "counters": counters})
    return Observation(at, run, system, tuple(detected(int(each), "t") for each in own))


def watched(step_seconds, gpus, *, cores=1.0, own=(), count=60, figures=()):
    """Return curve and samples of a run that steps and samples alike."""
    curve, samples = RunCurve(), RunSamples()
    for n in range(count):
        told = {"step": float(n + 1), "loss": 3.0, "step_seconds": step_seconds, **dict(figures)}
        curve.add([LogEntry(told, "x")], float(n))
        samples.add(observation(float(n), gpus, cores=cores, own=own))
    return curve, samples


def codes(planned, curve, samples):
    watch = Watch(DETECTORS)
    watch.look(curve, samples, 60.0)
    actual = measured(curve, samples, planned, 50)
    found = reasons(compare(actual, planned), curve, samples, planned, watch.active.values(), LIMITS)
    return [reason.code for reason in found]


def step_range(planned):
    return planned.estimate.computation.step_seconds


def test_a_run_as_predicted_needs_no_reasons(planned):
    fine = step_range(planned).value
    reserved = planned.estimate.memory.reserved_bytes.value
    curve, samples = watched(fine, [gpu(n, used=reserved) for n in range(4)])
    compared = compare(measured(curve, samples, planned, 50), planned)
    assert {each.key for each in compared} >= {"computation.step_seconds", "memory.reserved_bytes"}
    assert all(each.side == "inside" for each in compared)
    assert codes(planned, curve, samples) == []


@pytest.mark.parametrize(
    ("devices", "cores", "figures", "code"),
    [
        ([gpu(n, throttle=("thermal (software)",)) for n in range(4)], 1.0, {}, "heat"),
        ([gpu(n, throttle=("power cap",)) for n in range(4)], 1.0, {}, "power"),
        ([gpu(n, busy=40.0) for n in range(4)], 1.0, {}, "input"),
        ([gpu(n, busy=40.0) for n in range(4)], 1e6, {}, "input"),
        ([gpu(n) for n in range(4)], 1.0, {"input_seconds": 5.0}, "input"),
        ([gpu(n, watts=110.0) for n in range(4)], 1.0, {}, "communication"),
        ([gpu(n) for n in range(4)], 1.0, {"global_batch": 128.0}, "larger_batch"),
        ([gpu(n) for n in range(4)], 1.0, {"devices": 2.0}, "devices"),
    ],
)
def test_a_slow_run_says_why_by_its_evidence(planned, devices, cores, figures, code):
    curve, samples = watched(2 * step_range(planned).high, devices, cores=cores, figures=figures)
    assert code in codes(planned, curve, samples)


def test_a_fast_run_of_another_batch_or_precision_says_so(planned):
    curve, samples = watched(step_range(planned).low / 2, [], figures={"global_batch": 32.0})
    curve.add([LogEntry({}, "x", precision="fp16")], 99.0)
    assert codes(planned, curve, samples) == ["smaller_batch", "precision"]
    (step, *_) = compare(measured(curve, samples, planned, 50), planned)
    assert step.side == "faster"


def test_others_on_the_same_devices_are_named(planned):
    curve, samples = watched(2 * step_range(planned).high, [gpu(0, used=60 * GIB)], own=[30 * GIB])
    assert "shared" in codes(planned, curve, samples)


@given(st.floats(0, 1e6), st.lists(st.floats(0.01, 100), min_size=4, max_size=60))
@settings(max_examples=30, deadline=None)
def test_time_left_lies_in_its_range_and_grows_with_the_steps(steps, seconds):
    found = seconds_left(steps, np.asarray(seconds))
    assert found.low <= found.value <= found.high
    assert seconds_left(2 * steps, np.asarray(seconds)).value == pytest.approx(2 * found.value)


def test_time_left_counts_evaluations_but_not_one_long_halt():
    steps = np.tile([1.0] * 9 + [11.0], 20)
    assert seconds_left(100, steps).value == pytest.approx(200, rel=0.02)
    halted = np.ones(200)
    halted[150] = 3600.0
    assert seconds_left(100, halted).value < 150
    assert seconds_left(100, np.ones(2)) is None


def test_trouble_is_told_once_as_long_as_it_lasts():
    curve, samples = watched(1.0, [gpu(0, throttle=("thermal (software)",))])
    watch = Watch(DETECTORS)
    first = watch.look(curve, samples, 60.0)
    assert [(alarm.kind, alarm.where) for alarm in first] == [("throttling", "GPU 0")]
    assert "clocks are held down (GPU 0): for heat" in alarm_line(first[0])
    assert watch.look(curve, samples, 61.0) == ()
    assert len(watch.active) == 1


def test_heat_and_power_are_told_from_where_the_plan_says(planned):
    curve, samples = watched(1.0, [gpu(0, degrees=82.0), gpu(1, watts=200.0)])
    assert Watch(DETECTORS).look(curve, samples, 60.0) == ()
    told = Watch(detectors_of(DETECTORS, planned.plan.watch)).look(curve, samples, 60.0)
    found = [(alarm.kind, alarm.where, alarm.detail) for alarm in told if alarm.kind in ("hot", "power")]
    assert found == [
        ("hot", "GPU 0", "82 C, reported from 80 C on"),
        ("power", "GPU 0", "95 % of its limit, reported from 80 % on"),
    ]


def test_memory_that_leaks_on_a_device_says_when_it_is_full():
    samples = RunSamples()
    for n in range(900):
        samples.add(observation(float(n), [gpu(0, used=20 * GIB + n * 10e6)]))
    alarms = Watch(DETECTORS).look(RunCurve(), samples, 900.0)
    (leak,) = [alarm for alarm in alarms if alarm.kind == "leak"]
    assert leak.where == "GPU 0"
    true = (80 * GIB - 20 * GIB - 899 * 10e6) / 10e6
    assert leak.figures["low"] <= true * 1.01
    assert leak.figures["full_in_seconds"] == pytest.approx(true, rel=0.02)


def test_rows_keep_the_newest_and_start_anew_with_another_width():
    rows = Rows()
    for n in range(2 * MOST_SAMPLES + 10):
        rows.append((n, -n))
    assert rows.column(0)[-1] == 2 * MOST_SAMPLES + 9
    assert MOST_SAMPLES <= rows.values.shape[0] <= 2 * MOST_SAMPLES
    assert np.all(np.diff(rows.column(0)) == 1)
    rows.append((1.0,))
    assert rows.values.tolist() == [[1.0]]


def test_gauges_never_share_a_name_and_labels():
    run = RunMonitor(pid=os.getpid())
    try:
        run.take([LogEntry({"step": 3.0, "loss": 1.5, "memory_bytes": 2e9, "grad_norm": math.nan}, "x")], 1.0)
        gauges = tuple(RunGauges().of(run.look()))
    finally:
        run.close()
    named = {(gauge.name, *gauge.labels.items()): gauge.value for gauge in gauges}
    assert len(named) == len(gauges)
    assert named[("run_loss",)] == 1.5
    assert named[("run_memory_bytes",)] == 2e9
    assert named[("memory_bytes",)] > 1e6
    assert ("run_grad_norm",) not in named


def test_a_server_is_compared_by_its_tokens():
    clock = iter(float(n) for n in range(100))
    run = RunMonitor(clock=lambda: next(clock))
    run.take([LogEntry({"tokens": 100.0, "running_requests": 3.0}, "x")], 10.0)
    run.take([LogEntry({"tokens": 400.0, "running_requests": 3.0}, "x")], 12.0)
    state = run.look()
    assert state.actual["computation.infer.decode_tokens_per_second"] == 150.0
    assert "3 requests run" in progress_line(state)
    assert compared_rows(state) == []
    assert machine_lines(state) == []
    assert math.isfinite(state.seconds)
