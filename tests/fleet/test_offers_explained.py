"""Every figure of an offer opens into the equation that gave it, and is paid at its own price."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.migration import Alternative, Migration, MigrationQuestion, migrate
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.present.fleet import offer_explanation
from capacity_tui.engine.present.fleet.migration import TITLES
from capacity_tui.engine.units import format_quantity

PLAN = """
model: {name: llama-3.1-8b}
task: finetune
training: {method: lora, tokens: 5e7, seq_len: 4096}
hardware: {name: aws-p5-48xlarge, devices: 8}
"""
SPOT, CLOUD = "aws-g6e-4xlarge", "runpod-h100-sxm"
CATALOG = load_catalog()


@pytest.fixture(scope="module")
def question() -> MigrationQuestion:
    return MigrationQuestion(plan_from_text(PLAN, "plan"), "finetune", spot=True, instances=(SPOT, CLOUD))


@pytest.fixture(scope="module")
def found(question: MigrationQuestion) -> Migration:
    return migrate(question, CATALOG)


def offer(found: Migration, name: str) -> Alternative:
    return next(each for each in found.alternatives if each.instance == name)


@pytest.mark.parametrize("key", ["usd_month_spot", "saving_usd", "break_even_hours"])
def test_a_figure_opens_into_its_formula_and_the_figures_put_in(
    question: MigrationQuestion, found: Migration, key: str
) -> None:
    shown = offer_explanation(question, SPOT, key, CATALOG)
    value = getattr(offer(found, SPOT), key)
    assert shown.result == format_quantity(getattr(value, "value", value), TITLES[key][1])
    assert shown.title == TITLES[key][0]
    assert "=" in shown.formula
    assert shown.sources
    opened = {entry.name: entry for entry in shown.inputs}
    if key == "saving_usd":
        assert opened["other"].key == "usd_same_work"
        assert "1 × aws-p5-48xlarge" in opened["current"].source
    if key == "break_even_hours":
        assert opened["once"].key == "move_usd"
        assert opened["saving"].step is not None or opened["saving"].key == "saving_usd"


def test_what_is_a_sum_shows_its_parts_and_what_is_no_figure_says_so(question: MigrationQuestion) -> None:
    shown = offer_explanation(question, CLOUD, "move_usd", CATALOG)
    assert {"transfer", "set-up", "validation"} <= {entry.name for entry in shown.inputs}
    with pytest.raises(PlanError, match="no such figure"):
        offer_explanation(question, CLOUD, "usd_yearly", CATALOG)


def test_the_job_costs_what_its_hours_do_at_the_price_of_the_offer(
    found: Migration, question: MigrationQuestion
) -> None:
    cloud = offer(found, CLOUD)
    hours = cloud.figures["computation.estimated_train_time_seconds"].value / 3600
    assert cloud.figures["cost.usd"].value == pytest.approx(hours * cloud.usd_per_hour)
    spot = offer(found, SPOT)
    hours = spot.figures["computation.estimated_train_time_seconds"].value / 3600
    assert spot.figures["cost.usd"].value > hours * spot.usd_per_hour_spot
    demand = offer(migrate(replace(question, spot=False, instances=(SPOT,)), CATALOG), SPOT)
    assert demand.figures["cost.usd"].value == pytest.approx(hours * demand.usd_per_hour)
