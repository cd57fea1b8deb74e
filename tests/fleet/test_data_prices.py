"""What moving and holding data costs: worked out by hand from the price lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate.data import DataLocation, transfer_price
from capacity_tui.engine.estimate.data.supply import holding_price

CATALOG = load_catalog(Path("none"))
AWS, EUROPE, TOKYO = (DataLocation("AWS", region) for region in ("us-east-1", "eu-west-1", "ap-northeast-1"))


@pytest.mark.parametrize(
    ("gigabytes", "source", "target", "usd"),
    [
        (100, AWS, DataLocation("GCP", "us-central1"), 0.0),
        (1000, AWS, DataLocation("Lambda"), 900 * 0.09),
        (20480, AWS, DataLocation("Azure", "eastus"), 10140 * 0.09 + 10240 * 0.085),
        (1000, AWS, AWS, 0.0),
        (1000, AWS, DataLocation("AWS", "us-west-2"), 20.0),
        (1000, AWS, EUROPE, 20.0),
        (1000, TOKYO, AWS, 90.0),
        (2048, DataLocation("GCP", "us-central1"), AWS, 1023 * 0.12 + 1024 * 0.11),
        (1000, DataLocation("Lambda", "US"), AWS, 0.0),
        (
            1000,
            DataLocation("AWS"),
            DataLocation("GCP"),
            900 * 0.09,
        ),  # a region nobody names: the provider's first list
    ],
)
def test_moving_data_costs_its_steps(gigabytes: float, source: DataLocation, target: DataLocation, usd: float) -> None:
    found = transfer_price(gigabytes, source, target, CATALOG)
    assert found is not None
    assert float(np.asarray(found.usd)) == pytest.approx(usd)


def test_a_provider_without_a_price_list_has_no_price() -> None:
    assert transfer_price(10, DataLocation("House"), AWS, CATALOG) is None


def test_prices_say_whose_they_are_and_how_sure() -> None:
    recalled = transfer_price(10, TOKYO, AWS, CATALOG)
    seen = transfer_price(10, AWS, DataLocation("GCP"), CATALOG)
    assert recalled is not None
    assert seen is not None
    assert recalled.words.endswith("undated, unverified")
    assert seen.words.endswith("2026-01, over 90 days old")
    assert (recalled.verified, seen.verified) == (False, True)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_more_data_never_costs_less(first: float, second: float) -> None:
    sizes = np.array(sorted((first, second)))
    for source in (AWS, TOKYO, DataLocation("GCP", "us-central1"), DataLocation("Azure", "eastus")):
        found = transfer_price(sizes, source, DataLocation("other"), CATALOG)
        assert found is not None
        assert np.all(np.diff(np.asarray(found.usd)) >= 0)


def test_storage_is_paid_by_gigabyte_and_month() -> None:
    assert holding_price(1000, 3, CATALOG.disks["gcp-pd-ssd"]).usd == pytest.approx(510)


def test_every_row_of_money_names_what_the_catalogue_has() -> None:
    providers = {row.provider for row in CATALOG.instances.values()}
    for row in (*CATALOG.disks.values(), *CATALOG.egress.values(), *CATALOG.commitments.values()):
        assert row.provider in providers, row.id
    for offer in CATALOG.commitments.values():
        assert set(offer.instances) <= set(CATALOG.instances), offer.id
        assert set(offer.accelerators) <= set(CATALOG.accelerators), offer.id
        assert offer.instances or offer.accelerators, offer.id
    for price in CATALOG.egress.values():
        ends = [step.to_gb for step in price.steps]
        assert ends[-1] is None, price.id
        assert ends[:-1] == sorted(end for end in ends if end is not None), price.id
