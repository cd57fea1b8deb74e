"""One verdict on a run, wherever it is read."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from report_pages import to_html, to_markdown
from rich.console import Console

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import answer_parts, result_as_dict, to_json
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import compare
from capacity_tui.engine.verdict import Holds, Verdict
from capacity_tui.tui.cli.rich_tables import rich_parts
from capacity_tui.tui.shown.comparison import Column
from capacity_tui.tui.views.plan.present import column

MEMORY = {Verdict.FITS: 200_000, Verdict.TIGHT: 0, Verdict.DOES_NOT_FIT: 10_000}


def plan_with(memory_mib: int) -> Plan:
    return Plan.model_validate(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"micro_batch": 1},
            "parallelism": {"zero": 3},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8, "spec": {"memory_mib": memory_mib}},
        }
    )


def tight_memory_mib() -> int:
    """Return a size between what the plan is expected to take and the upper end of the range."""
    reserved = answer(plan_with(200_000)).estimate.memory.reserved_bytes
    return round((float(reserved.value) + float(reserved.high)) / 2 / 2**20)


def on_screen(wanted: Plan) -> Column:
    """Return what the balanced plan shows on the screen."""
    found = compare(wanted)
    return next(column(group, load_catalog()) for group in found.groups if found.balanced in group.plans)


@pytest.mark.parametrize("verdict", list(MEMORY))
def test_screen_table_reports_and_json_give_one_verdict(verdict: Verdict) -> None:
    wanted = plan_with(MEMORY[verdict] or tight_memory_mib())
    found = answer(wanted)
    plan, estimate = found.plan, found.estimate
    assert estimate.verdict is verdict
    assert on_screen(wanted).verdict is verdict
    assert json.loads(to_json(result_as_dict(plan, estimate)))["verdict"] == verdict.value
    assert shown(plan, estimate).splitlines()[0].partition(": ")[2].startswith(verdict.words)
    assert f"**{verdict.words.capitalize()}" in to_markdown(plan, estimate)
    assert verdict.words.capitalize() in to_html(plan, estimate)


def test_an_estimate_above_the_device_does_not_fit_though_its_low_end_would() -> None:
    reserved = answer(plan_with(200_000)).estimate.memory.reserved_bytes
    wanted = plan_with(round((float(reserved.value) + float(reserved.low)) / 2 / 2**20))
    found = answer(wanted)
    assert (found.estimate.verdict, found.estimate.fits) == (Verdict.DOES_NOT_FIT, False)
    (memory,) = found.estimate.broken
    assert memory.figure == "memory.reserved_bytes" and memory.holds is Holds.NO
    assert on_screen(wanted).reason == found.estimate.reason
    assert shown(found.plan, found.estimate).splitlines()[0].endswith(found.estimate.verdict_text)
    assert [note.code for note in found.estimate.warnings].count("does_not_fit") == 1


def shown(plan: Plan, estimate: Estimate) -> str:
    console = Console(width=200, file=StringIO())
    with console.capture() as captured:
        for table in rich_parts(answer_parts(plan, estimate, in_full=True)):
            console.print(table)
    return captured.get()


def test_a_run_that_its_host_cannot_hold_does_not_fit() -> None:
    plan = {
        "model": {"name": "llama-3.1-70b"},
        "training": {"micro_batch": 1, "checkpointing": "full"},
        "parallelism": {"zero": 3, "offload": "parameters"},
        "hardware": {"name": "h200-sxm-141gb", "devices": 8, "spec": {"host_memory_gib": 8}},
    }
    estimate = answer(Plan.model_validate(plan)).estimate
    assert estimate.verdict is Verdict.DOES_NOT_FIT
    (host,) = estimate.broken
    assert host.figure == "memory.host_bytes"
    assert "host memory" in estimate.shortage and "> 64.0 GiB" in estimate.shortage, "of all devices of the node"
