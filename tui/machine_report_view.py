"""All that is known about this machine, in the parts that ``detect`` writes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from capacity_tui.engine.api import BenchmarkReport, CapacityError, Machine, Plan, answer
from capacity_tui.tui.benchmark_view import report_tables
from capacity_tui.tui.headless.machine_report import job_parts, score_of, score_parts, surroundings_parts
from capacity_tui.tui.headless.tables.machine import machine_tables


def report_parts(
    machine: Machine, plan: Plan, benchmarks: BenchmarkReport | None, ascii_only: bool
) -> Iterator[RenderableType]:
    """Yield benchmarks, facts, score, what a plan meets here, topology and settings.

    Args:
        machine: what was detected.
        plan: what is to run on it.
        benchmarks: what was just measured, if anything was.
        ascii_only: whether the topology is drawn with ASCII characters alone.
    """
    if benchmarks is not None:
        yield Text("Benchmarks:", style="bold")
        yield from report_tables(benchmarks)
        yield Text()
    yield Text("Facts:", style="bold")
    yield from machine_tables(machine)
    yield Text()
    yield from score_parts(score_of(machine))
    yield Text()
    yield from _plan_parts(machine, plan)
    yield Text()
    yield from surroundings_parts(machine, ascii_only)


def _plan_parts(machine: Machine, plan: Plan) -> Iterator[RenderableType]:
    try:
        found = answer(plan, machine)
    except CapacityError as error:
        yield Text(f"n/a ({error.one_line()})", style="dim")
        return
    yield from job_parts(machine, found)
