"""``detect --benchmark``: measure this machine, keep the results, and show them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from capacity_tui.engine.errors import StorageError
from capacity_tui.tui.headless.learning import forecast_of
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, tell, write

if TYPE_CHECKING:
    from capacity_tui.engine.machine.benchmark import BenchmarkReport
    from capacity_tui.engine.machine.benchmark import Progress as BenchmarkProgress


def measured(folder: Path | None, url: str | None) -> BenchmarkReport:
    """Run the benchmarks and keep what was measured.

    Raises:
        HardwareError: the address is none.
    """
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.machine.benchmark import benchmarks_folder, save_report, web_address
    from capacity_tui.engine.storage.databases import benchmark_machine

    if url is not None:
        web_address(url)
    with _stop_on_interrupt() as cancelled:
        report = benchmark_machine(detect(), folder=folder, url=url, progress=_tell_progress, cancelled=cancelled)
    if report.measured:
        try:
            tell(f"kept in {save_report(report, benchmarks_folder())}")
        except StorageError as error:
            tell(f"not kept: {error.one_line()}")
    return report


def write_benchmark(report: BenchmarkReport, learn: str | None, wanted: str | None, output: Path | None) -> int:
    """Write what was measured, the score by it, and what would hold learning up; returns the exit code."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.cluster import score_machine
    from capacity_tui.engine.machine import detect
    from capacity_tui.engine.present import benchmark_parts, score_parts
    from capacity_tui.engine.present.storage import learning_parts
    from capacity_tui.tui.headless.tables.layout import rich_parts

    machine = detect()
    score = score_machine(machine, load_catalog())
    learning = None if learn is None else forecast_of(learn, machine)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        from capacity_tui.engine.present.storage import learning_as_dict

        data = {**asdict(report), "score": asdict(score)}
        write_data(data if learning is None else {**data, "learning": learning_as_dict(learning)}, form, output)
    else:
        said = [*benchmark_parts(report), *score_parts(score), *(learning_parts(learning) if learning else ())]
        write(as_text(rich_parts(said), output is not None), output)
    return 0 if report.complete else 130


@contextmanager
def _stop_on_interrupt() -> Iterator[threading.Event]:
    """Let the first interrupt end the benchmarks in order; the second ends the program as usual."""
    cancelled = threading.Event()

    def stop(number: int, _: FrameType | None) -> None:
        cancelled.set()
        signal.signal(number, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, before)


def _tell_progress(step: BenchmarkProgress) -> None:
    if step.latest is None:
        tell(f"{step.done + 1}/{step.total} {step.group}")
