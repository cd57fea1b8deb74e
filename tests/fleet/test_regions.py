"""A job region by region: prices of the data, and what its data costs on the way."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import quotes
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.fleet import Regions, by_region
from capacity_tui.engine.plan import with_values
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.fleet import regions_as_dict, regions_parts

PLAN = {
    "model": {"name": "gpt2"},
    "training": {"micro_batch": 4, "tokens": 1e8, "method": "full"},
    "hardware": {"name": "aws-p5-48xlarge", "devices": 8},
}
TERABYTE = 1e12


@pytest.fixture(scope="module")
def found() -> Regions:
    return by_region(plan_from_data(PLAN), 2 * TERABYTE, "us-east-1")


def test_every_region_with_a_price_is_there_at_that_price(found: Regions) -> None:
    catalog = load_catalog()
    known = {q.region: q.usd_per_hour for q in quotes(catalog.instances["aws-p5-48xlarge"], catalog, "on demand")}
    assert len(known) > 1
    assert {each.place.region: each.usd_per_hour for each in found.offers} == pytest.approx(known)
    assert found.seconds is not None
    for each in found.offers:
        assert each.usd == pytest.approx(found.seconds / 3600 * each.usd_per_hour)


def test_data_costs_nothing_where_it_is_and_its_way_elsewhere(found: Regions) -> None:
    for each in found.offers:
        assert each.data is not None
        if each.is_home:
            assert each.place.region == "us-east-1"
            assert each.total_usd == each.usd and each.data_hours == 0
        else:
            # Two cents a gigabyte between regions of AWS, from America.
            assert each.total_usd == pytest.approx(each.usd + 2000 * 0.02)
            assert each.data_hours > 0
    totals = [each.total_usd for each in found.offers]
    assert totals == sorted(totals)


def test_a_device_is_compared_over_the_clouds_that_have_it() -> None:
    plan = with_values(plan_from_data(PLAN), {"hardware.name": "h100-sxm-80gb"})
    found = by_region(plan, 0.0)
    assert len({each.place.provider for each in found.offers}) > 3
    assert len({(each.place.provider, each.place.region) for each in found.offers}) == len(found.offers)


def test_a_region_is_told_with_its_price_its_day_and_what_it_is_beside_home(found: Regions) -> None:
    data = regions_as_dict(found)
    assert data["usd_is_of"] == "job"
    assert data["home"] == {"provider": "AWS", "region": "us-east-1"}
    text = "\n".join(map(str, regions_parts(found)))
    assert "data is here" in text and "N. Virginia" in text and "2 000 GB" in text


def test_serving_is_compared_by_the_month_and_by_what_it_answers() -> None:
    served = {
        "model": {"name": "llama-3.1-8b"}, "task": "infer", "inference": {"engine": "vllm", "batch": 8},
        "hardware": {"name": "aws-p5-48xlarge"},
    }  # fmt: skip
    found = by_region(plan_from_data(served))
    assert found.seconds is None
    assert found.offers[0].usd == pytest.approx(720 * found.offers[0].usd_per_hour)
    assert found.offers[0].work_per_second > 100


@pytest.mark.parametrize(
    ("change", "home", "data", "said"),
    [
        ({}, "atlantis", 0.0, "atlantis"),
        ({}, None, -1.0, "amount of data"),
        ({"hardware.name": "rtx-3060-laptop"}, None, 0.0, "no prices|no hardware"),
        ({"model.name": "gpt-3-175b"}, None, 0.0, "no region runs"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: dict, home: str | None, data: float, said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        by_region(with_values(plan_from_data(PLAN), change), data, home)
