"""Benchmarks measure, tell their spread, stop on request and leave nothing behind."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.hardware.benchmark import accelerators, disk, measurement, watching
from capacity_tui.engine.hardware.benchmark.measurement import Measurement, Skipped, spread
from capacity_tui.engine.hardware.benchmark.report import (
    BenchmarkReport,
    measured_facts,
    read_reports,
    save_report,
)
from capacity_tui.engine.hardware.benchmark.run import run_benchmarks
from capacity_tui.engine.hardware.detect import detect
from capacity_tui.engine.hardware.own_machine import detected


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(measurement, "ENOUGH_SECONDS", 0.02)
    monkeypatch.setattr(disk, "FILE_BYTES", 32 << 20)
    monkeypatch.setattr(disk, "RANDOM_SECONDS", 0.05)


@pytest.fixture(scope="module")
def machine():
    return detect()


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=50))
def test_a_spread_holds_its_median(samples):
    found = spread(samples)
    assert min(samples) <= found.p10 <= found.median <= found.p90 <= max(samples)
    assert found.samples == len(samples)


def test_memory_processor_and_disk_are_measured(machine, tmp_path):
    seen = []
    report = run_benchmarks(machine, ("memory", "cpu", "disk"), folder=tmp_path, progress=seen.append)
    assert report.complete
    names = {figure.id for figure in report.measured}
    assert names >= {"memory.copy", "memory.triad", "cpu.gemm.fp32", "cpu.gemm.fp64"}
    assert names >= {"disk.write", "disk.read", "disk.random_read", "disk.random_write"}
    assert all(0 < figure.spread.p10 <= figure.spread.median <= figure.spread.p90 for figure in report.measured)
    fp32, fp64 = report.find("cpu.gemm.fp32"), report.find("cpu.gemm.fp64")
    assert fp32.spread.median > fp64.spread.median
    assert [step.group for step in seen if step.latest is None] == ["memory", "cpu", "disk"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_stopped_keeps_what_is_complete(machine, tmp_path):
    cancelled = threading.Event()

    def stop(step):
        if step.latest is not None and step.latest.id == "disk.write":
            cancelled.set()

    report = run_benchmarks(machine, ("disk", "network"), tmp_path, progress=stop, cancelled=cancelled)
    assert not report.complete
    assert [figure.id for figure in report.measured] == ["disk.write"]
    assert report.skipped == (Skipped("disk", "stopped"),)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_left_alone(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "FILE_BYTES", 1 << 60)
    report = run_benchmarks(machine, ("disk",), folder=tmp_path)
    (skipped,) = report.skipped
    assert "free in" in skipped.reason
    assert report.measured == ()


def test_a_folder_that_is_not_there_is_a_reason(machine, tmp_path):
    (skipped,) = run_benchmarks(machine, ("disk",), folder=tmp_path / "gone").skipped
    assert "No such file or directory" in skipped.reason


def test_the_network_stays_at_home_unless_asked(machine, monkeypatch):
    connect = socket.socket.connect

    def only_home(self, address):
        assert address[0] == "127.0.0.1"
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_home)
    report = run_benchmarks(machine, ("network",))
    assert {figure.id for figure in report.measured} == {"network.loopback", "network.resolve"}
    assert report.skipped == (Skipped("network.remote", "no address given"),)


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 3_000_000)

    def log_message(self, *words):
        pass


def test_a_named_address_is_measured(machine):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        report = run_benchmarks(machine, ("network",), url=f"http://127.0.0.1:{server.server_port}/data")
        server.shutdown()
    assert {figure.id for figure in report.measured} >= {"network.connect", "network.download"}


@pytest.mark.parametrize(("url", "reason"), [("ftp://x", "not a web address"), ("http://127.0.0.1:1/", "refused")])
def test_addresses_that_cannot_be_measured_are_reasons(machine, url, reason):
    (skipped,) = run_benchmarks(machine, ("network",), url=url).skipped
    assert reason in skipped.reason


def test_gpus_without_pytorch_or_devices_are_a_reason(machine):
    (skipped,) = run_benchmarks(machine, ("gpu",)).skipped
    assert skipped.reason.startswith("PyTorch")


def kept(machine, date: str, rate: float) -> BenchmarkReport:
    figure = Measurement("cpu.gemm.fp32", "CPU matrix product, fp32", "FLOP/s", spread([rate]), "1024³")
    cpu = machine.cpu
    return BenchmarkReport(date, cpu.model.value, cpu.usable_threads.value, (), True, (figure,), ())


def test_the_newest_figures_of_this_machine_count(machine, tmp_path):
    save_report(kept(machine, "2026-01-01T00:00:00+00:00", 1e9), tmp_path)
    path = save_report(kept(machine, "2026-02-01T00:00:00+00:00", 2e9), tmp_path)
    other = replace(kept(machine, "2026-03-01T00:00:00+00:00", 9e9), processor="another")
    save_report(other, tmp_path)
    (tmp_path / "broken.json").write_text("{")
    assert path.name == "2026-02-01T000000+0000.json"
    assert len(read_reports(tmp_path)) == 3
    facts = measured_facts(tmp_path, machine)
    assert (facts.fp32_flops.value, facts.fp32_flops.origin) == (2e9, "measured")
    assert "2026-02-01" in facts.fp32_flops.source
    assert "detect --benchmark" in facts.memory_bandwidth.reason


def test_measured_rates_replace_the_usual_shares(machine, tmp_path):
    bare = replace(machine, accelerators=(), measured=(), benchmarked=None)
    usual = detected(bare, load_catalog()).device
    save_report(kept(machine, "2026-01-01T00:00:00+00:00", 0.5 * usual.peak("fp32")), tmp_path)
    found = detected(replace(bare, benchmarked=measured_facts(tmp_path, machine)), load_catalog()).device
    assert found.gemm_reach("fp32") == pytest.approx(0.5)
    assert found.peaks == usual.peaks
    assert found.reach.stream == usual.reach.stream
    assert "2026-01-01" in found.reach.source


def test_gpus_are_measured_by_type(machine, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(accelerators, "_devices", lambda torch: ("cpu:0",))
    monkeypatch.setattr(accelerators, "SIZE", 64)
    monkeypatch.setattr(accelerators, "COPY_BYTES", 1 << 20)
    report = run_benchmarks(machine, ("gpu",))
    names = {figure.id for figure in report.measured}
    assert names >= {"gpu.cpu:0.gemm.float32", "gpu.cpu:0.gemm.bfloat16", "gpu.cpu:0.copy"}
    assert all(entry.reason for entry in report.skipped)


def test_sensors_are_watched_under_load(monkeypatch):
    monkeypatch.setattr(watching, "INTERVAL_SECONDS", 0.01)
    with watching.watched(lambda: ()) as moments:
        time.sleep(0.1)
    seen = len(moments)
    assert seen >= 3
    time.sleep(0.05)
    assert len(moments) == seen


def test_a_killed_program_leaves_no_file(tmp_path):
    with disk._nameless_file(Path(tmp_path)) as (handle, _):
        assert handle > 0
        assert list(tmp_path.iterdir()) == []
