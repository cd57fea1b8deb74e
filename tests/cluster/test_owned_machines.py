"""A machine of one's own costs what buying and running it comes to, beside what others cost to rent."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import chosen_quote
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer, explain

ROW = """
lab-box:
  name: Lab box
  accelerator: H100
  accelerator_count: 8
  memory_gb: 1024
  purchase: {usd: 280000, lifetime_years: 4, watts: 10200, use: 0.6, overhead: 1.3, usd_per_kwh: 0.12}
"""
HOUR = 13.318113 + 1.5912  # 280 000 $ over 4 · 8760 · 0.6 hours = 13.3181 $, and 10.2 kW · 1.3 · 0.12 $ = 1.5912 $


@pytest.fixture
def own(tmp_path: Path) -> Catalog:
    (tmp_path / "instances.yaml").write_text(ROW, "utf-8")
    return Catalog(tmp_path)


def test_an_hour_costs_its_share_of_the_purchase_and_its_power(own: Catalog) -> None:
    assert own.problems == ()
    row = own.instances["lab-box"]
    assert row.accelerator == "h100-sxm-80gb"
    assert row.on_demand_usd_per_hour == pytest.approx(HOUR)
    quote = chosen_quote(row, "on demand", None, own)
    assert quote is not None
    assert "bought for $280" in quote.words
    assert not quote.age.is_old
    assert chosen_quote(row, "spot", None, own) is None


def test_the_price_of_a_job_opens_into_the_purchase(own: Catalog) -> None:
    data = {
        "task": "train",
        "model": {"name": "7B"},
        "training": {"tokens": 1e9, "seq_len": 4096},
        "hardware": {"name": "lab-box", "devices": 16},
    }
    plan = plan_from_data(data)
    estimate = answer(plan, catalog=own).estimate
    assert estimate.cost.usd_per_hour == pytest.approx(2 * HOUR)
    told = explain(plan, "cost.usd", catalog=own)
    assert "lifetime · use" in str(told)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ("{usd: -1, lifetime_years: 4, watts: 1}", "usd"),
        ("{usd: 1, lifetime_years: 4}", "watts"),
        ("{usd: 1, lifetime_years: 4, watts: 1, use: 2}", "use"),
        ("cheap", "purchase"),
    ],
)
def test_a_purchase_that_makes_no_sense_is_named(tmp_path: Path, wrong: str, field: str) -> None:
    text = f"box:\n  accelerator: h100-sxm-80gb\n  accelerator_count: 1\n  purchase: {wrong}\n"
    (tmp_path / "instances.yaml").write_text(text, "utf-8")
    catalog = Catalog(tmp_path)
    (problem,) = catalog.problems
    assert "instances.yaml:4" in str(problem.place)
    assert field in (problem.place.field or "")
    assert "box" not in catalog.instances
