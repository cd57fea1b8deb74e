"""Rows that are shipped: their sources and sense, the modes among them, and schemas of their data."""

from __future__ import annotations

import json
import re
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from capacity_tui.engine.catalog import Catalog, parse_shipped, read_yaml
from capacity_tui.engine.plan.sections import MEMORY_REMEDIES

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
    assert shipped.optimizers["adafactor"].longer_side_bytes == 4


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


ORDER = ("conservative", "balanced", "extreme")


def test_utilization_and_sizes(shipped: Catalog) -> None:
    low, middle, high = (shipped.modes[name] for name in ORDER)
    assert [mode.utilization for mode in (low, middle, high)] == [0.50, 0.75, 0.95]
    assert low.parameters_range == (23e6, 70e6)
    assert middle.parameters_range == (70e6, 200e6)
    assert high.parameters_range == (200e6, None)
    assert low.batch_range == (2, 8)
    assert middle.batch_range == (8, 32)
    assert high.batch_range == (None, None)
    assert [mode.sequence_range for mode in (low, middle, high)] == [(512, 1024), (1024, 2048), (2048, None)]
    assert [mode.training_hours_range for mode in (low, middle, high)] == [(0.5, 2), (2, 6), (6, None)]
    assert [mode.power_share_range for mode in (low, middle, high)] == [(None, 0.4), (0.6, 0.8), (0.9, 1.0)]


def test_tokens_per_parameter(shipped: Catalog) -> None:
    assert shipped.modes["conservative"].tokens_per_parameter_range == (10, 15)
    assert shipped.modes["balanced"].tokens_per_parameter == 20
    assert shipped.modes["extreme"].tokens_per_parameter_range == (25, None)


def test_reserves_shrink_from_conservative_to_extreme_within_the_ranges(shipped: Catalog) -> None:
    reserves = [shipped.modes[name].reserve for name in ORDER]
    for name in ("context_gb", "fragmentation", "spikes", "system_gb"):
        figures = [getattr(reserve, name) for reserve in reserves]
        assert figures == sorted(figures, reverse=True), name
    for reserve in reserves:
        assert reserve.context_gb_range == (1, 2)
        assert reserve.fragmentation_range == (0.15, 0.20)
        assert reserve.system_gb_range == (2, 4)
        assert reserve.spikes == 0.10
        for name in ("context_gb", "fragmentation", "system_gb"):
            least, most = getattr(reserve, f"{name}_range")
            assert least <= getattr(reserve, name) <= most


def test_recovery_alerts_and_warnings(shipped: Catalog) -> None:
    low, middle, high = (shipped.modes[name] for name in ORDER)
    assert [len(mode.recovery.out_of_memory) for mode in (low, middle, high)] == [6, 4, 0]
    assert set(low.recovery.out_of_memory) == set(MEMORY_REMEDIES)
    assert high.recovery.max_restarts == 0
    assert middle.watch.temperature_c == 80
    assert [mode.watch.power_share for mode in (low, middle, high)] == [0.4, 0.8, 1.0]
    assert any("80 C" in warning.text for warning in high.warnings)
    assert all(mode.recovery.checkpoint_share > 0 for mode in (low, middle, high))


ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "profiles").rglob("*.yaml"))
SCHEMAS = ROOT / "docs" / "schemas"
MODELINE = re.compile(r"# yaml-language-server: \$schema=(?P<path>\S+)")


@cache
def validator(schema: Path) -> Draft7Validator:
    return Draft7Validator(json.loads(schema.read_text("utf-8")))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_data_file_is_valid_by_the_schema_that_it_names(file: Path) -> None:
    named = MODELINE.fullmatch(file.read_text("utf-8").partition("\n")[0])
    assert named is not None
    schema = (file.parent / named["path"]).resolve()
    assert schema.parent == SCHEMAS
    faults = [
        f"{'.'.join(map(str, fault.path))}: {fault.message}"[:300]
        for fault in validator(schema).iter_errors(parse_shipped(file))
    ]
    assert faults == []


def test_every_schema_is_one_of_draft_7_and_describes_some_file() -> None:
    named = {(file.parent / file.read_text("utf-8").partition("\n")[0].partition("=")[2]).name for file in FILES}
    assert named == {schema.name for schema in SCHEMAS.iterdir()}
    for schema in SCHEMAS.iterdir():
        Draft7Validator.check_schema(json.loads(schema.read_text("utf-8")))
