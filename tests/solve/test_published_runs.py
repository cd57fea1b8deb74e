"""What was published of runs is met by what a person types about them, with nothing else said."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill

HOUR = 3600.0
with Path(__file__).with_name("published_runs.csv").open(encoding="utf-8", newline="") as file:
    RUNS = list(csv.DictReader(file))
FACTOR = 3.0  # Runs that are known to lie outside of their range lie within this factor of it


def gpu_hours(estimate: Estimate) -> tuple[float, float]:
    """Return both ends of the range of the device-hours of a job."""
    computation = estimate.computation
    assert computation.steps is not None
    each = float(computation.steps * computation.devices) / HOUR
    return float(computation.step_seconds.low) * each, float(computation.step_seconds.high) * each


def test_the_table_holds_thirty_runs_of_which_most_are_met() -> None:
    assert len(RUNS) >= 30
    assert sum(run["holds"] == "no" for run in RUNS) <= 4


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["line"])
def test_what_was_published_is_met(run: dict[str, str]) -> None:
    found = fill(plan_of_line(read_line(run["line"])).plan, "balanced").estimate
    published = float(run["published"])
    if run["figure"] == "fits":
        assert found.fits is bool(published)
        return
    low, high = gpu_hours(found)
    assert (low <= published <= high) is (run["holds"] == "yes"), f"{low:.3g} to {high:.3g}"
    assert low / FACTOR <= published <= high * FACTOR
    assert found.fits
