"""Offers have the figures that planning gives: the machine of the plan as it stands, every other once it is taken."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import figures_of
from capacity_tui.engine.fleet.migration import MigrationQuestion, job_kind_of, migrate
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.solve.modes.modes import MODES

CATALOG = load_catalog()
SOME = ("aws-p5-48xlarge", "aws-p4d-24xlarge", "aws-g6e-4xlarge", "aws-g5-xlarge", "runpod-h100-sxm", "gcp-tpu-v6e-1")
LINES = (
    "lora llama-3.1-8b p4d 50M 4k",
    "qlora llama-3.1-70b 8xh100 50M",
    "full finetune llama-3.1-8b 8xa100 10M",
    "serve llama-3.1-8b h100",
    "serve qwen2.5-72b 8xh100 3 req/s ttft<1s",
)


def planned(line: str):
    return plan_of_line(read_line(line)).plan


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("spot", [False, True])
def test_planning_a_row_gives_its_figures(line: str, spot: bool) -> None:
    plan = planned(line)
    found = migrate(MigrationQuestion(plan, job_kind_of(plan), spot=spot, instances=SOME), CATALOG)
    assert dict(found.current.figures) == figures_of(fill(plan, "balanced", None, CATALOG).estimate)
    fitting = [each for each in found.alternatives if each.figures]
    assert fitting
    for each in fitting:
        taken = fill(edited(plan, each.set, CATALOG).plan, "balanced", None, CATALOG)
        assert dict(each.figures) == figures_of(taken.estimate), each.instance


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_those_of_the_mode_that_fills_the_plan(mode) -> None:
    plan = planned(LINES[0])
    found = migrate(MigrationQuestion(plan, "finetune", instances=SOME[:2], mode=mode), CATALOG)
    for each in (found.current, *found.alternatives):
        taken = fill(edited(plan, each.set, CATALOG).plan if each.set else plan, mode, None, CATALOG)
        assert dict(each.figures) == figures_of(taken.estimate), each.instance
