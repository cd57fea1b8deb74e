"""What ships is complete, consistent and honest about its sources."""

from __future__ import annotations

import re
from datetime import date
from importlib.resources import files

import pytest

from capacity_tui.engine.catalog import Catalog, read_yaml

NAMES = (
    "accelerators",
    "processors",
    "links",
    "measured_links",
    "architectures",
    "instances",
    "fabrics",
    "spot_markets",
    "precisions",
    "coefficients",
    "optimizers",
    "quantizations",
    "frameworks",
    "engines",
    "weight_kernels",
    "modes",
)
MOST_ROWS = {"accelerators": 130, "processors": 41, "links": 52, "architectures": 141, "instances": 183}


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_valid_and_says_where_it_comes_from(shipped: Catalog, name: str) -> None:
    table = getattr(shipped, name)
    assert len(table) >= MOST_ROWS.get(name, 1)
    for row_id, row in table.items():
        assert row.id == row_id
        assert row.source.strip()
        assert date(2020, 1, 1) <= row.checked <= date(2026, 12, 31)
        assert row.confidence in "ABC"
        assert row.verified is (row.confidence != "C")
        assert row.provenance == "catalogue"
    assert table.problems == ()


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_over_the_files_of_a_table(name: str) -> None:
    profiles = files("capacity_tui.profiles")
    alone = profiles / f"{name}.yaml"
    sources = [alone] if alone.is_file() else list((profiles / name).iterdir())
    ids: list[str] = []
    for source in sources:
        document = read_yaml(source.read_text("utf-8"), source.name)  # refuses a key given twice
        assert isinstance(document.data, dict)
        ids += document.data
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", row_id) for row_id in ids)


def test_dense_peaks_are_at_most_half_of_sparse_headlines(shipped: Catalog) -> None:
    known = [a for a in shipped.accelerators.values() if a.fp16_marketed_sparse_tflops and a.fp16_tflops]
    assert len(known) > 40
    for row in known:
        assert row.fp16_tflops <= row.fp16_marketed_sparse_tflops / 2 * 1.01, row.id


def test_peaks_grow_as_numbers_shrink(shipped: Catalog) -> None:
    for row in shipped.accelerators.values():
        if row.fp8_tflops and row.bf16_tflops:
            assert row.fp8_tflops >= row.bf16_tflops, row.id
        if row.measured_bf16_tflops and row.bf16_tflops:
            assert row.measured_bf16_tflops <= row.bf16_tflops, row.id


def test_well_known_accelerators(shipped: Catalog) -> None:
    h100 = shipped.accelerators["h100-sxm-80gb"]
    assert h100.memory_mib == 81559
    assert h100.memory_bytes == 81559 * 2**20
    assert not h100.memory_mib_assumed
    assert h100.bf16_tflops == 989.4
    assert h100.peak_flops("bf16_tflops") == pytest.approx(989.4e12)
    assert h100.link_gbs == 450
    assert h100.compute_capability == "9.0"
    assert shipped.accelerators["rtx-4090"].bf16_tflops == 165.2
    assert shipped.accelerators["b300-sxm"].memory_mib == 275040
    assert shipped.accelerators["mi100"].memory_mib_assumed


def test_rows_point_at_rows_that_exist(shipped: Catalog) -> None:
    for accelerator in shipped.accelerators.values():
        assert accelerator.link is None or accelerator.link in shipped.links, accelerator.id
    for row in shipped.measured_links.values():
        assert row.accelerator in shipped.accelerators, row.id
    for instance in shipped.instances.values():
        device = shipped.accelerators if instance.accelerator else shipped.processors
        assert (instance.accelerator or instance.processor) in device, instance.id
        assert instance.network_link is None or instance.network_link in shipped.links, instance.id
        assert instance.rdma_gbit is None or instance.network_link, instance.id
    for fabric in shipped.fabrics.values():
        assert fabric.network in shipped.links, fabric.id


def test_every_generation_has_an_efficiency_row_of_its_own(shipped: Catalog) -> None:
    covered = {name for row in shipped.efficiencies.values() for name in row.generations}
    assert {row.id: row.generation for row in shipped.accelerators.values() if row.generation not in covered} == {}


def test_link_bandwidths_are_per_direction(shipped: Catalog) -> None:
    for row in shipped.links.values():
        if row.bidirectional_gbs is not None:
            assert row.per_direction_gbs * 2 == pytest.approx(row.bidirectional_gbs, rel=0.01), row.id


def test_architecture_counts(shipped: Catalog) -> None:
    llama = shipped.architectures["llama-3.1-8b"]
    assert (llama.layers, llama.hidden, llama.kv_heads, llama.params_total) == (32, 4096, 8, 8_030_261_248)
    for row in shipped.architectures.values():
        if row.params_total and row.params_published:
            assert row.params_total == pytest.approx(row.params_published, rel=0.02), row.id
        if row.params_total and row.params_active:
            assert row.params_active <= row.params_total, row.id
        if row.heads and row.kv_heads:
            assert row.heads % row.kv_heads == 0, row.id
        if row.experts:
            assert row.experts_active, row.id
            assert row.experts_active <= row.experts, row.id


def test_prices_carry_region_and_date(shipped: Catalog) -> None:
    p5 = shipped.instances["aws-p5-48xlarge"]
    assert p5.on_demand_usd_per_hour == 55.04
    assert p5.usd_per_device_hour == pytest.approx(6.88)
    for row in shipped.instances.values():
        if row.on_demand_usd_per_hour and row.spot_usd_per_hour:
            assert row.spot_usd_per_hour <= row.on_demand_usd_per_hour, row.id
        if row.provider in {"AWS", "GCP", "Azure"} and row.on_demand_usd_per_hour and row.verified:
            assert row.region, row.id
            assert row.price_date, row.id


def test_optimizer_states(shipped: Catalog) -> None:
    expected = {
        "adamw": 8,
        "adamw_bf16": 4,
        "adamw8bit": 2,
        "sgd": 0,
        "sgd_momentum": 4,
        "rmsprop": 4,
        "lamb": 8,
        "lion": 4,
        "muon": 4,
    }
    assert {name: shipped.optimizers[name].state_bytes for name in expected} == expected
    assert shipped.optimizers["adafactor"].factored


def test_precisions_name_fields_of_accelerators(shipped: Catalog) -> None:
    assert set(shipped.precisions) == {"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"}
    for row in shipped.precisions.values():
        assert row.peak_field in type(shipped.accelerators["t4"]).model_fields


def test_quantizations_follow_from_their_blocks(shipped: Catalog) -> None:
    table = shipped.quantizations
    assert table["nf4"].body_bits == pytest.approx(4.127)
    assert table["q4_0"].base_bits == 18 * 8 / 32
    assert table["q4_k_m"].base_bits == 144 * 8 / 256
    # Llama 2 7B, millions of weights in layers, embedding and head; published as 4.84 bits.
    mixed = table["q4_k_m"]
    bits = (mixed.body_bits * 6476 + mixed.embedding_bits * 131.07 + mixed.output_bits * 131.07) / 6738.4
    assert bits == pytest.approx(4.84, abs=0.03)
    for row in table.values():
        if row.body_bits and row.base_bits and row.id != "iq3_xs":  # mixes in a smaller type
            assert row.body_bits >= row.base_bits * 0.99, row.id
