"""Profiles: what real work used, how fast its stages went, and that profiling never gets in its way."""

from __future__ import annotations

import dataclasses
import http.server
import json
import threading
import time

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.present.runs import profile_rows
from capacity_tui.engine.runs.profile import ProfilingEngine, ResourceSnapshot
from capacity_tui.engine.runs.profile import profiler as profiling
from capacity_tui.engine.runs.profile.profile import Stages
from capacity_tui.engine.runs.profile.snapshots import NUMBERS, Timeline

MIB = 1 << 20


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers every question after a moment."""

    def do_GET(self) -> None:
        time.sleep(0.02)
        self.send_response(404 if self.path == "/gone" else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def profiler(endpoint):
    """A profile of this process, in two stages, the second of which takes memory."""
    made = ProfilingEngine(sampling_interval=0.1, url=endpoint)
    made.start()
    with made.stage("count") as stage:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            stage.done(2)
    with made.stage("hold", samples=10):
        held = bytearray(b"x" * (200 * MIB))
        time.sleep(0.3)
        del held
    made.stop()
    return made


def test_a_summary_has_the_names_that_scripts_use(profiler):
    summary = profiler.stop()
    assert summary is profiler.stop()
    assert summary.peak_memory_mb > 200
    assert summary.avg_memory_mb < summary.peak_memory_mb
    assert summary.cpu_avg_percent > 0
    assert summary.primary_bottleneck
    assert 0 <= summary.bottleneck_confidence <= 1
    assert summary.memory_per_sample_mb == pytest.approx(summary.peak_memory_mb / summary.samples)
    assert len(summary.cpu_per_core_percent) >= 1


def test_stages_say_how_fast_they_went(profiler):
    count, hold = profiler.stop().stages
    assert (count.name, hold.name) == ("count", "hold")
    assert count.samples_per_second == count.samples / count.seconds > 0
    assert hold.samples == 10
    assert profiler.profile().timeline[-2].stage == "hold"


def test_an_endpoint_is_asked_meanwhile(profiler, endpoint):
    latency = profiler.stop().latency
    assert latency.url == endpoint
    assert latency.status == 200
    assert latency.failed == 0
    assert latency.round_trip_ms[1] >= latency.round_trip_ms[0] >= 20
    assert profiler.stop().bottleneck.scores["network"] == pytest.approx(min(1, latency.mean_ms / 100))


def test_an_endpoint_that_refuses_is_told_with_its_latency(endpoint):
    with ProfilingEngine(url=f"{endpoint}gone") as made:
        time.sleep(0.2)
    assert dict(profile_rows(made.stop()))["Latency"].endswith("refused with 404 Not Found")


def test_json_has_every_key_and_says_why_others_are_missing(profiler, tmp_path):
    profiler.export_json(tmp_path / "profile.json")
    told = json.loads((tmp_path / "profile.json").read_text())
    assert set(told) >= {"command", "exit_code", "seconds", "interval", "samples", "summary", "stages", "timeline"}
    assert set(told["summary"]) >= {
        "peak_memory_bytes", "average_memory_bytes", "memory_bytes_per_sample", "cpu_average_percent", "cpu_per_core",
        "disk", "network", "latency_ms", "gpus",
    }  # fmt: skip
    assert set(told["bottleneck"]["scores"]) == {"cpu", "memory", "disk", "network", "gpu"}
    assert set(told["stages"][0]) >= {"name", "seconds", "samples", "samples_per_second"}
    assert len(told["timeline"]) == told["samples"]
    assert told["bottleneck"]["scores"]["gpu"] is not None or told["missing"]["gpus"]


def test_snapshots_cannot_be_changed(profiler):
    snapshot = profiler.profile().timeline[0]
    assert isinstance(snapshot, ResourceSnapshot)
    with pytest.raises(dataclasses.FrozenInstanceError):
        snapshot.memory_bytes = 0


def test_an_endpoint_that_does_not_answer_is_missing_with_its_reason():
    with ProfilingEngine(url="http://127.0.0.1:1/") as made:
        time.sleep(0.05)
    summary = made.stop()
    assert summary.network_latency_ms is None
    assert summary.latency.last_failure
    assert summary.bottleneck.scores["network"] is None


@pytest.mark.parametrize("interval", [0, -1, float("nan"), 0.01])
def test_an_interval_that_cannot_be_is_refused(interval):
    with pytest.raises(CapacityError):
        ProfilingEngine(interval)


def test_what_goes_wrong_while_looking_is_told_and_stops_nothing(monkeypatch):
    def broken(*_: object) -> None:
        raise OSError("sensors on fire")

    monkeypatch.setattr(profiling, "observe", broken)
    with ProfilingEngine() as made:
        pass
    assert "sensors on fire" in made.profile().problems[0]
    assert made.stop().peak_memory_mb is None


def snapshot(at: float, value: float) -> ResourceSnapshot:
    numbers = {**dict.fromkeys(NUMBERS, value), "at_seconds": at, "seconds": 1.0}
    return ResourceSnapshot(**numbers, stage="", cpu_per_core_percent=None, gpus=())


def test_a_timeline_of_any_length_keeps_peaks_means_and_its_end():
    timeline = Timeline(most=16)
    for number in range(1000):
        timeline.add(snapshot(float(number), 100.0 if number == 500 else 1.0))
    kept = timeline.snapshots
    assert len(kept) <= 17
    assert kept[-1].at_seconds == 999
    assert sum(each.seconds for each in kept) == 1000
    assert max(each.memory_bytes for each in kept) == 100
    assert sum(each.cpu_percent * each.seconds for each in kept) == pytest.approx(1099)


def test_a_stage_entered_again_counts_on():
    times = iter((0.0, 2.0, 10.0, 13.0, 20.0, 21.0))
    stages = Stages(clock=lambda: next(times))
    with stages.stage("train") as stage:
        stage.done(4)
    with stages.stage("train"):
        pass
    opened = stages.enter("test")
    assert stages.current == "test"
    train, test = stages.totals()
    assert (train.seconds, train.samples) == (5.0, 4)
    assert (test.seconds, test.samples, test.samples_per_second) == (1.0, None, None)
    assert opened[0] == "test"


def test_what_was_never_started_has_nothing_to_tell():
    with pytest.raises(CapacityError, match="not started"):
        ProfilingEngine().stop()
