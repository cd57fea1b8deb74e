"""The engine's benchmarks of this machine, as the screen shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity_tui.engine.present import benchmark_figure_text
from capacity_tui.tui.shown.machine import BenchmarkOutcome, BenchmarkStep

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.machine.benchmark import BenchmarkReport
    from capacity_tui.engine.machine.benchmark import Progress as BenchmarkProgress


class Benchmarks:
    """Measures this machine.

    Attributes:
        report: what was measured last; what cannot be kept is shown at least until the program ends.
        before: what was measured before that.
    """

    def __init__(self) -> None:
        self.report: BenchmarkReport | None = None
        self.before: BenchmarkReport | None = None

    def run(
        self, machine: Machine, progress: Callable[[BenchmarkStep], None], cancelled: Event, renew: Callable[[], object]
    ) -> BenchmarkOutcome:
        """Measure a machine and keep what was measured.

        Args:
            machine: the machine.
            progress: called before each benchmark and after each figure.
            cancelled: stops the benchmarks when set.
            renew: looks at the machine again, once what was measured is kept.

        Raises:
            StorageError: the results cannot be kept.
        """
        from capacity_tui.engine.machine.benchmark import benchmarks_folder, busy_text, read_reports, save_report
        from capacity_tui.engine.storage.databases import benchmark_machine

        def on_progress(step: BenchmarkProgress) -> None:
            latest = benchmark_figure_text(step.latest)
            progress(BenchmarkStep(step.group, step.done + 1, step.total, latest))

        earlier = next(iter(read_reports(benchmarks_folder())), None)
        report = benchmark_machine(machine, progress=on_progress, cancelled=cancelled)
        if report.measured:
            self.report, self.before = report, earlier
            save_report(report, benchmarks_folder())
            renew()
        return BenchmarkOutcome(len(report.measured), report.complete, busy_text(report) if report.disturbed else "")
