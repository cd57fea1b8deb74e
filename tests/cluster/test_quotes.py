"""A price says where, since when and on what terms; the one nearest to what a plan asks for is taken."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog, load_catalog, price_age
from capacity_tui.engine.catalog.rows.prices import day_of_file
from capacity_tui.engine.cluster import Price, chosen_quote, quotes, resolve_cluster
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import HardwareSection, PricingSection

CATALOG = load_catalog(Path("none"))
OWN = """
house-8x:
  name: 8x
  provider: House
  accelerator: h100-sxm-80gb
  accelerator_count: 8
  on_demand_usd_per_hour: 40
  region: us-east-1
  price_date: "2026-11-01"
  regions:
    europe-west4: {on_demand_usd_per_hour: 50, spot_usd_per_hour: 20}
    eu-west-1: {on_demand_usd_per_hour: 45, price_date: "2026-11-20", committed_usd_per_hour: {3y: 22}}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("catalog")
    (folder / "instances.yaml").write_text(OWN)
    (folder / "commitments.yaml").write_text(
        "house-1y: {name: plan, provider: House, term: 1y, instances: [house-8x], share: 0.7}\n"
    )
    return Catalog(folder)


def price(catalog: Catalog, name: str = "house-8x", devices: int = 8, **pricing: object) -> Price:
    section = HardwareSection(name=name, devices=devices)
    return resolve_cluster(section, PricingSection.model_validate(pricing), catalog, None).price


@pytest.mark.parametrize(
    ("region", "usd", "remarks"),
    [
        (None, 40, 0),
        ("us-east-1", 40, 0),
        ("eu-west-1", 45, 0),
        ("EU West 1", 45, 0),
        ("europe", 45, 0),  # any region of Europe: the cheapest
        ("europe-west9", 45, 1),  # another region of Europe, and that is said
        ("asia", 40, 1),
    ],
)
def test_the_nearest_region_is_taken(own: Catalog, region: str | None, usd: float, remarks: int) -> None:
    found = price(own, region=region)
    assert found.usd_per_hour == usd
    assert len(found.remarks) == remarks
    assert price(own, devices=16, region=region).usd_per_hour == 2 * usd


def test_a_commitment_costs_what_is_published_or_its_share(own: Catalog) -> None:
    assert price(own, commitment="1y").usd_per_hour == pytest.approx(28)
    assert price(own, commitment="1y", region="eu-west-1").usd_per_hour == pytest.approx(31.5)
    three = price(own, commitment="3y", region="us-east-1")
    assert (three.usd_per_hour, three.quotes[0].region) == (22, "eu-west-1")
    assert "committed for 3y" in three.source
    assert price(own, commitment="3y", spot=True).rate == 20


def test_no_commitment_is_on_demand_and_said() -> None:
    found = price(CATALOG, "runpod-h100-sxm", 1, commitment="1y")
    assert found.usd_per_hour == price(CATALOG, "runpod-h100-sxm", 1).usd_per_hour
    assert any("commitment of 1y" in remark for remark in found.remarks)


def test_an_unknown_region_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError) as refused:
        price(CATALOG, "aws-p5-48xlarge", region="us-esat-1")
    assert "us-east-1" in (refused.value.hint or "")


def test_a_refreshed_price_is_laid_over_the_shipped_one(tmp_path: Path) -> None:
    text = 'aws-p5-48xlarge: {regions: {us-east-1: {on_demand_usd_per_hour: 50, price_date: "2026-11-22"}}}\n'
    (tmp_path / "instances.yaml").write_text(text)
    found = price(Catalog(tmp_path), "aws-p5-48xlarge")
    assert found.usd_per_hour == 50
    assert "2026-11-22" in found.source


def test_devices_by_name_are_priced_where_the_plan_asks() -> None:
    found = price(CATALOG, "h100-sxm-80gb", 8, region="asia")
    assert found.quotes[0].region in {row.id for row in CATALOG.regions.values() if "asia" in row.areas}
    assert found.usd_per_hour is not None
    assert found.usd_per_hour > (price(CATALOG, "h100-sxm-80gb", 8).usd_per_hour or 0)


def test_a_price_of_nodes_without_a_network_is_said_to_be_one() -> None:
    assert price(CATALOG, "h100-pcie-80gb", 8).remarks == ()
    (remark,) = price(CATALOG, "h100-pcie-80gb", 512).remarks
    assert "no network between nodes" in remark
    assert price(CATALOG, "h100-sxm-80gb", 512).remarks == ()


def test_every_region_of_a_price_is_known_and_spot_is_not_dearer() -> None:
    for row in CATALOG.instances.values():
        known = {(quote.region, quote.payment): quote.usd_per_hour for quote in quotes(row, CATALOG)}
        for (region, payment), usd in known.items():
            assert region is None or CATALOG.regions.find_id(region), (row.id, region)
            if payment == "spot" and (region, "on demand") in known:
                assert usd <= known[region, "on demand"], (row.id, region)


@pytest.mark.parametrize(
    ("day", "days", "is_old"),
    [
        ("2026-11-22", 0, False),
        ("2026-08-24", 90, False),
        ("2026-08-23", 91, True),
        ("2026-10", 22, False),  # a month counts from its end
        ("2025", 326, True),
        ("2026 (undated)", None, True),
        ("unknown", None, True),
        ("2026-13-45", None, True),
        (None, None, True),
    ],
)
def test_a_price_is_old_after_ninety_days(day: str | None, days: int | None, is_old: bool) -> None:
    found = price_age(day, date(2026, 11, 22))
    assert (found.days, found.is_old) == (days, is_old)
    assert bool(found.words) is is_old


def test_a_file_of_a_clock_that_runs_ahead_was_written_today(tmp_path: Path) -> None:
    file = tmp_path / "instances.yaml"
    file.touch()
    os.utime(file, (4e9, 4e9))
    assert price_age(day_of_file(file)).days == 0


def test_an_old_price_is_marked_in_words(own: Catalog) -> None:
    quote = chosen_quote(CATALOG.instances["azure-nd96isr-h100-v5"], "on demand", "westeurope", CATALOG)
    assert quote is not None
    assert quote.usd_per_hour == 127.816
    assert quote.usd_per_device_hour == pytest.approx(127.816 / 8)
    assert quote.words.endswith("2026-06-18, over 90 days old")
