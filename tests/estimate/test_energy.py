"""Electricity by part, and what it emits by region."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import grid_of
from capacity_tui.engine.estimate import METRICS, EnergyEstimate
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval


def energy_of(line: str) -> EnergyEstimate:
    return answer(plan_of_line(read_line(line)).plan).estimate.energy


def test_parts_add_up_and_one_node_has_no_network() -> None:
    one, many = energy_of("gpt2 full 8xh100 1k 1B"), energy_of("gpt2 full 16xh100 1k 1B")
    for energy in (one, many):
        parts = (energy.kwh, energy.kwh_host, energy.kwh_network, energy.kwh_cooling)
        assert sum(mean(part) for part in parts if part is not None) == pytest.approx(mean(energy.kwh_system or 0.0))
    assert one.kwh_network == 0.0
    assert mean(many.kwh_network or 0.0) > 0.0


def test_emissions_follow_the_region_and_nothing_else_does() -> None:
    paris, warsaw = (
        energy_of(f"gpt2 full 8xh100 1k 1B pricing.region={region} pricing.usd_per_hour=20")
        for region in ("europe-west9", "polandcentral")
    )
    assert paris.kwh_system == warsaw.kwh_system
    assert mean(warsaw.carbon_kg or 0.0) / mean(paris.carbon_kg or 1.0) == pytest.approx(642.88 / 16.3)
    assert "2024" in paris.grid and paris.grid.startswith("paris")
    nowhere = energy_of("gpt2 full 8xh100 1k 1B pricing.usd_per_hour=20")
    assert nowhere.grams_per_kwh == grid_of(None).grams_per_kwh


def test_every_region_of_a_grid_is_known_and_has_one_grid() -> None:
    known = load_catalog().regions
    with_grids = [region for region in known if grid_of(region).name != "world"]
    assert len(with_grids) > 60
    counted = [region for name in with_grids for region in grid_of(name).regions]
    assert set(counted) <= set(known)


KWH = {"MWh": 1e3, "GWh": 1e6}
TOLD = re.compile(r"([\d.]+) (MWh|GWh) \(([\d .]+) to ([\d .]+)\)")
PUBLISHED = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in (Path(__file__).parents[2] / "docs" / "energy.md").read_text("utf-8").splitlines()
    if row.startswith("| `") and "Wh (" in row
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row[0])
def test_the_page_tells_what_is_estimated_of_published_runs(row: list[str]) -> None:
    estimate = fill(plan_of_line(read_line(row[0].strip("`"))).plan, "balanced").estimate
    for cell, key in zip(row[3:], (Figure.ENERGY_KWH, Figure.ENERGY_KWH_SYSTEM), strict=True):
        found = TOLD.match(cell)
        assert found is not None, cell
        value = METRICS[key].read(estimate)
        assert isinstance(value, Interval)
        for text, end in zip(found.group(1, 3, 4), (value.value, value.low, value.high), strict=True):
            told = float(text.replace(" ", "")) * KWH[found[2]]
            assert told == pytest.approx(float(mean(end)), rel=0.02)
