"""Electricity by part, and what it emits by region."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import grid_of
from capacity_tui.engine.estimate import EnergyEstimate
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line


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
