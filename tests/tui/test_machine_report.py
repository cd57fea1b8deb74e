"""What the screen of this machine is made of, with a real machine and recorded benchmarks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from capacity_tui.engine.machine import Machine
from capacity_tui.engine.machine.benchmark import BenchmarkReport, Measurement, Progress, Skipped
from capacity_tui.engine.machine.benchmark.benchmark_report import Spread
from capacity_tui.engine.present import TextPart, table_part
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.view import BenchmarkStep
from capacity_tui.tui.views.machine.screen import report_lines

TRIAD = Measurement("memory.triad", "memory triad", "B/s", Spread(41.4e9, 34.7e9, 44.6e9, 60), "2 threads")
GEMM = Measurement("cpu.gemm.fp32", "CPU matrix product, fp32", "FLOP/s", Spread(2e11, 1.7e11, 2.1e11, 80), "BLAS")
NO_GPU = Skipped("gpu", "PyTorch sees no GPU")


def recorded(machine: Machine, progress: Callable[[Progress], None], cancelled: threading.Event) -> BenchmarkReport:
    progress(Progress("memory", 0, 2))
    progress(Progress("memory", 0, 2, TRIAD))
    progress(Progress("gpu", 1, 2, NO_GPU))
    cpu = machine.cpu
    threads = cpu.usable_threads.value or 0
    complete = not cancelled.is_set()
    name = cpu.model.value or ""
    return BenchmarkReport("2026-11-21T12:00:00+00:00", name, threads, (), complete, (TRIAD, GEMM), (NO_GPU,))


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CapacityEngine:
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("capacity_tui.engine.storage.database_bench.benchmark_machine", recorded)
    return CapacityEngine()


def text(engine: CapacityEngine, width: int = 100, ascii_only: bool = False) -> str:
    parts = engine.machine_report(None, ascii_only)
    return "\n".join(line.plain.rstrip() for line in report_lines(parts, width))


def test_report_says_what_detect_says(engine: CapacityEngine) -> None:
    shown = text(engine)
    for part in ("source", "Not known: ", "Performance score:", "Predicted bottleneck for", "Topology:", "Settings:"):
        assert part in shown
    assert "Benchmarks:" not in shown


def test_what_is_not_known_is_folded_into_a_line_for_each_reason(engine: CapacityEngine) -> None:
    lines = text(engine, width=1000).splitlines()
    (unmeasured,) = (line for line in lines if line.startswith("Not measured yet:"))
    assert "disk read" in unmeasured
    assert not [line for line in lines if "n/a (not measured" in line]


def test_a_second_measurement_stands_beside_the_one_before(engine: CapacityEngine) -> None:
    engine.benchmark(lambda _: None, threading.Event())
    assert not re.search(r"^figure +on 2026-11-21 +now", text(engine), re.MULTILINE)
    engine.benchmark(lambda _: None, threading.Event())
    assert re.search(r"^figure +on 2026-11-21 +now", text(engine), re.MULTILINE)


@pytest.mark.parametrize("width", [36, 76, 116])
def test_report_fits_the_width_there_is(engine: CapacityEngine, width: int) -> None:
    engine.benchmark(lambda _: None, threading.Event())
    lines = report_lines(engine.machine_report(None, ascii_only=False), width)
    assert max(len(line.plain) for line in lines) <= width


def test_benchmarks_are_kept_and_shown_as_measured(engine: CapacityEngine, tmp_path: Path) -> None:
    before = engine.detect()
    steps: list[BenchmarkStep] = []
    outcome = engine.benchmark(steps.append, threading.Event())
    assert (outcome.figures, outcome.is_complete) == (2, True)
    assert [(step.number, step.name) for step in steps] == [(1, "memory"), (1, "memory"), (2, "gpu")]
    assert steps[1].latest == "memory triad 41.4 GB/s (34.7 GB/s – 44.6 GB/s)"
    assert steps[2].latest == "gpu: not measured, PyTorch sees no GPU"
    assert list((tmp_path / "data" / "benchmarks").glob("*.json"))
    shown = text(engine, 160)
    assert "Benchmarks:" in shown
    assert "measured: memory triad on 2026-11-21" in shown
    measured = [row for row in CapacityEngine().detect() if row.origin == "measured"]
    assert [row.text for row in measured] == ["200.0 GFLOP/s fp32  41.4 GB/s"]
    assert not [row for row in before if row.origin == "measured"]


def test_estimates_use_what_was_measured(engine: CapacityEngine) -> None:
    engine.detect()
    document = engine.propose()
    engine.benchmark(lambda _: None, threading.Event())
    renewed = engine.renewed(document)
    assert renewed.plan == document.plan
    assert any(row.label == "Measured" for row in renewed.compare().hardware)


def test_topology_is_drawn_in_ascii_where_that_is_asked_for(engine: CapacityEngine) -> None:
    tree = text(engine, 100, ascii_only=True).partition("Topology:")[2].partition("Settings:")[0]
    assert tree.isascii()


def test_strong_lines_are_headings_and_cells_are_broken_where_room_is_short() -> None:
    rows = [("CPU", "a name of many words", "1")]
    parts = [TextPart("Facts:", "strong"), TextPart("rule", "quiet"), table_part(("what", "value", "n"), rows, (2,))]
    lines = report_lines(parts, 24)
    assert [line.spans[0].role for line in lines[:3]] == ["heading", "dim", "heading"]
    assert [line.plain.rstrip() for line in lines[4:]] == ["CPU   a name of many   1", "      words"]
    assert report_lines([TextPart("  - indented words")], 12)[1].plain == "  words"
