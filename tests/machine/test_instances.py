"""Instances are what they are: parts of devices, whole rents, several of them, each with its own network."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from capacity_tui.engine.catalog import Instance, load_catalog
from capacity_tui.engine.cluster import Cluster, resolve_cluster
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan import HardwareSection, Plan, PricingSection
from capacity_tui.engine.present import headline

CATALOG = load_catalog()
PRICED = sorted(row.id for row in CATALOG.instances.values() if row.on_demand_usd_per_hour)
SOURCED = {"source": "x", "checked": "2026-11-22", "confidence": "B"}
BY_NAME = ["h100-sxm-80gb", "a100-sxm-80gb", "l4", "rtx-4090", "b200-sxm"]


def cluster(name: str, devices: int | None = None, **pricing: object) -> Cluster:
    return resolve_cluster(
        HardwareSection(name=name, devices=devices), PricingSection.model_validate(pricing), CATALOG, None
    )


def per_node_gbit(found: Cluster) -> float:
    return float(found.node_bandwidth) * float(found.per_node) * 8 / 1e9


@pytest.mark.parametrize(
    ("name", "devices", "gbit"),
    [
        ("aws-p4d-24xlarge", 16, 400),
        ("aws-p3-16xlarge", 16, 25),
        ("aws-p5-48xlarge", 16, 3200),
        ("azure-nd96isr-h100-v5", 16, 3200),  # InfiniBand, not the 80 Gbit/s of its host
        ("azure-nd96is-h100-v5", 16, 80),  # the same without InfiniBand
        ("gcp-a3-highgpu-8g", 16, 800),  # of its 1000 Gbit/s, 200 are the host's
        ("aws-trn1-32xlarge", 32, 800),
        ("BM.GPU.H100.8", 16, 3200),
    ],
)
def test_nodes_are_joined_by_the_instances_own_network(name: str, devices: int, gbit: float) -> None:
    found = cluster(name, devices)
    assert per_node_gbit(found) == pytest.approx(gbit)
    assert found.figures()["node_bandwidth"].origin == "catalogue"
    assert not any("network" in text for text in found.assumed)


def test_devices_of_a_rack_share_the_ports_of_their_instance() -> None:
    found = cluster("azure-nd128isr-ndr-gb200-v6", 144)
    assert found.per_node == 72
    assert float(found.node_bandwidth) == pytest.approx(50e9)
    assert found.rented == "36 x azure-nd128isr-ndr-gb200-v6"


def test_a_network_that_nobody_states_is_assumed_and_never_fast() -> None:
    found = cluster("lambda-gpu-8x-h100-sxm5", 16)
    assert any(text.startswith("network between nodes") and "Lambda states none" in text for text in found.assumed)
    assert per_node_gbit(found) <= 25


def test_what_joins_nodes_is_data_for_every_device_with_a_fast_link() -> None:
    for row in CATALOG.accelerators.values():
        if (row.link_gbs or 0) >= 140:
            assert CATALOG.fabric_of(row).id != "other", row.id
    mi455x = resolve_cluster(HardwareSection(name="mi455x", devices=144), PricingSection(), CATALOG, None)
    assert float(mi455x.node_bandwidth) >= 50e9
    assert "network between racks: RoCE v2 800GbE" in mi455x.assumed


def test_a_slower_network_of_the_instance_makes_a_sharded_step_slower() -> None:
    def step(name: str, **hardware: object) -> float:
        plan = Plan.model_validate(
            {
                "model": {"name": "llama-3-8b"},
                "task": "train",
                "training": {"seq_len": 4096, "steps": 10},
                "parallelism": {"zero": 3},
                "hardware": {"name": name, "devices": 64, **hardware},
            }
        )
        return float(estimate_plan(plan).estimate.computation.step_seconds.value)

    assert step("aws-p4d-24xlarge") > 1.3 * step("aws-p4d-24xlarge", interconnect="ib-hdr")


def test_a_part_of_a_device_has_its_part_of_everything() -> None:
    part, whole = cluster("aws-g6f-large"), cluster("aws-g6-xlarge")
    assert float(part.device.memory_bytes or 0) == pytest.approx(float(whole.device.memory_bytes or 0) / 8)
    assert float(part.device.bandwidth) == pytest.approx(float(whole.device.bandwidth) / 8)
    assert part.device.peak("bf16") == pytest.approx(whole.device.peak("bf16") / 8)
    assert part.price.usd_per_hour == 0.202
    assert part.words == "1 x 1/8 l4 in 1 x aws-g6f-large"
    assert cluster("aws-g6f-large", 4).price.usd_per_hour == pytest.approx(4 * 0.202)


def test_every_part_of_a_device_is_smaller_than_the_device() -> None:
    parts = [row for row in CATALOG.instances.values() if 0 < row.accelerator_count < 1]
    assert len(parts) == 11
    for row in parts:
        memory = CATALOG.accelerators[row.accelerator or ""].memory_bytes
        found = cluster(row.id).device
        assert float(found.memory_bytes or 0) == pytest.approx(memory * row.accelerator_count)


@pytest.mark.parametrize(("devices", "instances"), [(1, 1), (3, 1), (8, 1), (9, 2), (16, 2)])
def test_instances_are_rented_whole(devices: int, instances: int) -> None:
    found = cluster("aws-p5-48xlarge", devices)
    assert found.price.usd_per_hour == pytest.approx(55.04 * instances)
    assert found.rented == f"{instances} x aws-p5-48xlarge"
    idle = 8 * instances - devices
    told = f"{instances} x aws-p5-48xlarge rented whole, {idle} of its devices idle"
    assert (told in found.assumed) is (idle > 0)


def test_a_number_before_an_instance_counts_instances() -> None:
    plan = Plan.model_validate({"model": {"name": "llama-3-8b"}, "hardware": {"name": "2xp5.48xlarge"}})
    assert plan.hardware.devices == 16
    with pytest.raises(ValidationError, match="16 devices"):
        Plan.model_validate({"model": {"name": "llama-3-8b"}, "hardware": {"name": "2xp5.48xlarge", "devices": 2}})


def test_the_title_tells_devices_from_instances() -> None:
    plan = Plan.model_validate(
        {"model": {"name": "llama-3-8b"}, "hardware": {"name": "P5", "devices": 16}, "parallelism": {"zero": 3}}
    )
    found = estimate_plan(plan)
    title = headline(found.plan, found.estimate)
    assert title == "llama-3-8b, train, 16 x h100-sxm-80gb in 2 x aws-p5-48xlarge"


def test_spot_and_on_demand_say_their_own_regions() -> None:
    price = cluster("aws-p5-48xlarge").price
    assert "us-east-1" in price.source
    assert "us-east-2" in price.spot_source


def test_the_source_of_a_price_that_was_looked_for_is_assumed() -> None:
    one = cluster("h100-sxm-80gb", 8)
    assert any(text.startswith("price: cheapest on demand: RunPod") for text in one.assumed)
    many = cluster("h100-sxm-80gb", 512)
    assert "RunPod" not in many.price.source, "its pods have no network between them"
    assert any(text.startswith("price: ") and many.price.source in text for text in many.assumed)
    assert not any("price" in text for text in cluster("h100-sxm-80gb", 512, usd_per_hour=100).assumed)


@given(name=st.sampled_from(PRICED), devices=st.integers(1, 600))
def test_whole_rents_cost_no_less_than_their_devices(name: str, devices: int) -> None:
    row = CATALOG.instances[name]
    usd = cluster(name, devices).price.usd_per_hour
    assert usd is not None
    each = (row.on_demand_usd_per_hour or 0.0) / row.sold_devices
    assert usd >= each * devices * (1 - 1e-12)
    assert usd == pytest.approx((row.on_demand_usd_per_hour or 0.0) * math.ceil(devices / row.sold_devices))


@given(name=st.sampled_from(BY_NAME), devices=st.integers(1, 4))
def test_a_device_by_its_own_name_is_never_dearer_than_an_instance_of_a_node(name: str, devices: int) -> None:
    usd = cluster(name, devices).price.usd_per_hour
    assert usd is not None
    for row in CATALOG.instances_with(name):
        if row.on_demand_usd_per_hour and row.verified:
            assert usd <= row.on_demand_usd_per_hour * math.ceil(devices / row.sold_devices) * (1 + 1e-12)


def test_an_instance_without_accelerators_is_the_cores_it_has() -> None:
    found, half = cluster("aws-m7i-48xlarge"), cluster("aws-m7i-24xlarge")
    socket = CATALOG.processors["xeon-8480"]
    assert found.device.kind == "cpu"
    assert found.device.units == 96
    assert float(found.device.bandwidth) == pytest.approx((socket.bandwidth_gbs or 0) * 1e9 * 96 / socket.cores)
    assert found.device.peak("fp32") == pytest.approx(2 * (half.device.peak("fp32") or 0))
    assert found.device.memory_bytes == 768 * 2**30
    assert (found.price.usd_per_hour, found.price.quotes[0].usd_per_device_hour) == (9.6768, None)


def test_an_instance_has_accelerators_or_processors() -> None:
    for fields in ({"accelerator": "l4"}, {"processor": "xeon-8480"}, {}):
        with pytest.raises(ValidationError, match="give accelerator and accelerator_count, or processor"):
            Instance.model_validate({"id": "x", "name": "x", "provider": "x", **SOURCED, **fields})
