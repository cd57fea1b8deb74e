"""What was published of whole runs, all their stops included, is met by what a person types about them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill

ROOT = Path(__file__).parents[2]
FIGURES = {
    "calendar_days": (Figure.RELIABILITY_CALENDAR_SECONDS, 86400.0),
    "mtbf_hours": (Figure.RELIABILITY_MTBF_HOURS, 1.0),
    "goodput": (Figure.RELIABILITY_GOODPUT, 1.0),
}
with Path(__file__).with_name("published_calendars.csv").open(encoding="utf-8", newline="") as file:
    RUNS = list(csv.DictReader(file))
FACTOR = 3.0  # Runs that are known to lie outside of their range lie within this factor of it


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['figure']} of {run['line']}")
def test_what_was_published_of_whole_runs_is_met(run: dict[str, str]) -> None:
    reliability = fill(plan_of_line(read_line(run["line"])).plan, "balanced").estimate.reliability
    assert reliability is not None
    key, unit = FIGURES[run["figure"]]
    interval = getattr(reliability, key.rpartition(".")[2])
    low, value, high = (float(end) / unit for end in (interval.low, interval.value, interval.high))
    published = float(run["published"])
    assert (low <= published <= high) is (run["holds"] == "yes"), f"{low:.3g} to {high:.3g}"
    assert low / FACTOR <= published <= high * FACTOR
    if run["figure"] == "calendar_days":
        page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
        assert f"| {published:g} d | {value:.1f} d ({low:.1f} to {high:.1f}) |" in page


def test_most_whole_runs_are_met() -> None:
    assert sum(run["holds"] == "no" for run in RUNS) <= 3
