"""Benchmarks measure, tell their spread, stop on request and leave nothing behind."""

from __future__ import annotations

import contextlib
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
from capacity_tui.engine.cluster import cluster_of_machine
from capacity_tui.engine.machine import Counters, detect
from capacity_tui.engine.machine.benchmark import (
    BenchmarkReport,
    Measurement,
    Skipped,
    all_benchmarks,
    benchmark_report,
    io_speed,
    read_reports,
    run_benchmarks,
    save_report,
    spread,
    web_address,
)
from capacity_tui.engine.machine.benchmark.benchmark_report import Totals, busy_share, measured_facts
from capacity_tui.engine.present import benchmark_parts
from capacity_tui.engine.storage import database_bench
from capacity_tui.tui.cli import main


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(benchmark_report, "ENOUGH_SECONDS", 0.02)
    monkeypatch.setattr(io_speed, "FILE_BYTES", 32 << 20)
    monkeypatch.setattr(io_speed, "RANDOM_SECONDS", 0.05)


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
    monkeypatch.setattr(io_speed, "FILE_BYTES", 1 << 60)
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
    assert {figure.id for figure in report.measured} >= {"network.connect", "network.round_trip", "network.download"}


class Health(Answer):
    def do_GET(self):
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b"starting")


def test_a_health_page_has_a_round_trip_and_no_rate(machine):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        report = run_benchmarks(machine, ("network",), url=f"http://127.0.0.1:{server.server_port}/health")
        server.shutdown()
    trip = report.find("network.round_trip")
    assert 0 < trip.spread.p10 <= trip.spread.median <= trip.spread.p90 < 5
    assert trip.how.endswith("status 503")
    assert Skipped("network.download", "8 B there: too little to tell a rate from") in report.skipped


@pytest.mark.parametrize(("url", "reason"), [("ftp://x", "not a web address"), ("http://127.0.0.1:1/", "refused")])
def test_addresses_that_cannot_be_measured_are_reasons(machine, url, reason):
    (skipped,) = run_benchmarks(machine, ("network",), url=url).skipped
    assert reason in skipped.reason


@pytest.mark.parametrize(
    "url", ["http://x:99999/", "http://x:0/", "http://[::1", "http://" + "a" * 64 + ".example/", "ftp://x", "http://"]
)
def test_an_address_that_cannot_be_is_refused_before_anything_is_measured(url, monkeypatch, capsys):
    monkeypatch.setattr(database_bench, "run_benchmarks", lambda *words, **options: pytest.fail("measured"))
    assert main(["detect", "--benchmark", "--url", url]) == 2
    told = capsys.readouterr().err
    assert "not a web address" in told
    assert "Traceback" not in told


def test_a_path_may_hold_any_letter():
    assert web_address("https://example.org/caf\xe9?q=\xfc").path == "/caf%C3%A9?q=%C3%BC"


def test_a_server_that_drips_holds_nothing_up(machine, monkeypatch):
    monkeypatch.setattr(io_speed, "REMOTE_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def drip():
            with contextlib.ExitStack() as held, contextlib.suppress(OSError):
                while not ended.is_set():
                    held.enter_context(server.accept()[0])

        threading.Thread(target=drip, daemon=True).start()
        started = time.monotonic()
        report = run_benchmarks(machine, ("network",), url=f"http://127.0.0.1:{server.getsockname()[1]}/")
        ended.set()
    assert time.monotonic() - started < 20
    (skipped,) = report.skipped
    assert skipped.reason == "127.0.0.1: no answer within 1 s"


def test_cancelling_does_not_wait_for_a_silent_server(machine):
    cancelled = threading.Event()

    def stop(step):
        if step.latest is not None and step.latest.id == "network.resolve":
            threading.Timer(0.2, cancelled.set).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        report = run_benchmarks(machine, ("network",), url=url, progress=stop, cancelled=cancelled)
    assert not report.complete
    assert report.skipped == (Skipped("network", "stopped"),)


def test_a_server_that_answers_nonsense_sends_no_escapes(machine):
    def answer(server):
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as connection:
                    connection.sendall(b"\x1b]0;owned\x07\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server,), daemon=True).start()
        report = run_benchmarks(machine, ("network",), url=f"http://127.0.0.1:{server.getsockname()[1]}/")
    assert report.skipped
    assert all(entry.reason.isprintable() for entry in report.skipped)


def test_a_machine_without_a_loopback_is_a_reason(machine, monkeypatch):
    def refuse(*words, **options):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "create_server", refuse)
    report = run_benchmarks(machine, ("network",))
    assert Skipped("network.loopback", "no loopback here: Network is unreachable") in report.skipped
    assert report.complete


def busy(machine, share: float):
    """Return counters of a machine whose CPUs others use in part."""
    threads = machine.cpu.usable_threads.value
    started = time.monotonic(), time.process_time()

    def read() -> Counters:
        elapsed, own = time.monotonic() - started[0], time.process_time() - started[1]
        return Counters(own + share * threads * elapsed, threads * elapsed, 0, 0, 0, 0)

    return read


def test_a_busy_machine_is_told_and_its_figures_do_not_count(machine, tmp_path):
    report = run_benchmarks(machine, ("network",), counters=busy(machine, 0.4))
    assert report.busy_share == pytest.approx(0.4, abs=0.05)
    assert report.disturbed
    assert not run_benchmarks(machine, ("network",), counters=busy(machine, 0.02)).disturbed
    save_report(replace(kept(machine, "2026-01-01T00:00:00+00:00", 1e9), busy_share=0.01), tmp_path)
    save_report(replace(kept(machine, "2026-02-01T00:00:00+00:00", 9e9), busy_share=0.4), tmp_path)
    assert measured_facts(tmp_path, machine).fp32_flops.value == 1e9
    alone = tmp_path / "alone"
    save_report(replace(kept(machine, "2026-02-01T00:00:00+00:00", 9e9), busy_share=0.4), alone)
    assert "while others took 40% of the processor" in measured_facts(alone, machine).fp32_flops.reason
    shown = [str(part) for part in benchmark_parts(read_reports(alone)[0])]
    assert any("are not used in estimates" in part for part in shown)


def test_cpus_that_others_use_beside_ours_are_no_disturbance():
    before = Totals(0.0, Counters(0, 0, 0, 0, 0, 0), 0.0)
    after = Totals(10.0, Counters(640 + 20, 1280, 0, 0, 0, 0), 20.0)
    assert busy_share(before, after, 2) == 0  # 64 of 128 CPUs are busy, 2 are ours
    assert busy_share(before, after, 128) == pytest.approx(0.5)
    assert busy_share(before, Totals(10.0, Counters(None, None, 0, 0, 0, 0), 0.0), 2) is None


@pytest.mark.parametrize("rate", [1e300, -1.0, 0.0])
def test_rates_that_cannot_be_are_not_believed(rate, machine, tmp_path):
    save_report(kept(machine, "2026-01-01T00:00:00+00:00", rate), tmp_path)
    assert measured_facts(tmp_path, machine).fp32_flops.value is None


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
    usual = cluster_of_machine(bare, load_catalog()).device
    save_report(kept(machine, "2026-01-01T00:00:00+00:00", 0.5 * usual.peak("fp32")), tmp_path)
    found = cluster_of_machine(replace(bare, benchmarked=measured_facts(tmp_path, machine)), load_catalog()).device
    assert found.gemm_reach("fp32") == pytest.approx(0.5)
    assert found.peaks == usual.peaks
    assert found.efficiency.stream == usual.efficiency.stream
    assert "2026-01-01" in found.efficiency.source


def test_gpus_are_measured_by_type(machine, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(all_benchmarks, "_devices", lambda torch: ("cpu:0",))
    monkeypatch.setattr(all_benchmarks, "ACCELERATOR_SMALLER", 64)
    monkeypatch.setattr(all_benchmarks, "COPY_BYTES", 1 << 20)
    report = run_benchmarks(machine, ("gpu",))
    names = {figure.id for figure in report.measured}
    assert names >= {"gpu.cpu:0.gemm.float32", "gpu.cpu:0.gemm.bfloat16", "gpu.cpu:0.copy"}
    assert all(entry.reason for entry in report.skipped)


def test_sensors_are_watched_under_load(monkeypatch):
    monkeypatch.setattr(all_benchmarks, "INTERVAL_SECONDS", 0.01)
    with all_benchmarks.watched(lambda: ()) as readings:
        time.sleep(0.1)
    seen = len(readings)
    assert seen >= 3
    time.sleep(0.05)
    assert len(readings) == seen


def test_a_killed_program_leaves_no_file(tmp_path):
    with io_speed._nameless_file(Path(tmp_path)) as (handle, _):
        assert handle > 0
        assert list(tmp_path.iterdir()) == []
