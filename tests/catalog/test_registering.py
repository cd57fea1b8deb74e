"""Hardware of one's own in the fields of the ML Capacity Planner: from files, from Python, with its price."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog, load_catalog, register_hardware
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CatalogError
from capacity_tui.engine.plan import HardwareSection, PricingSection
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer

CUSTOM = {
    "type": "gpu",
    "peak_flops": 50e12,
    "peak_flops_fp16": 100e12,
    "mem_gb": 64,
    "vram_gb": 24,
    "bandwidth_gbps": 900,
    "cost_per_hour": 2.00,
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_catalog: None) -> Path:
    monkeypatch.setenv("CAPACITY_TUI_CONFIG", str(tmp_path))
    return tmp_path


def test_registered_hardware_is_planned_for_at_its_price(home: Path) -> None:
    row = register_hardware("my_custom_gpu", CUSTOM)
    assert (row.name, row.provenance) == ("my_custom_gpu", "user file")
    cluster = resolve_cluster(HardwareSection(name="my_custom_gpu", devices=2), PricingSection(), load_catalog())
    device = cluster.device
    assert (device.memory_bytes, device.bandwidth) == (24 * 2**30, 900e9)
    assert (device.peaks["fp32"], device.peaks["fp16"]) == (50e12, 100e12)
    assert cluster.host_memory_bytes == 64 * 2**30
    assert cluster.price.usd_per_hour == 4.00
    assert list(home.rglob("*.yaml")) == [home / "catalog" / "accelerators" / "my_custom_gpu.yaml"]


def test_a_processor_has_its_memory_peak_and_price() -> None:
    fields = {"type": "cpu", "cores": 8, "peak_flops": 1e12, "mem_gb": 64, "bandwidth_gbps": 90, "cost_per_hour": 0.4}
    register_hardware("my_cpu", fields)
    cluster = resolve_cluster(HardwareSection(name="my_cpu"), PricingSection(), load_catalog())
    assert cluster.device.peaks["fp32"] == pytest.approx(1e12)
    assert (cluster.device.memory_bytes, cluster.price.usd_per_hour) == (64 * 2**30, 0.4)


def test_a_later_one_of_the_same_name_replaces_it() -> None:
    register_hardware("card", CUSTOM)
    assert register_hardware("card", {**CUSTOM, "vram_gb": 48}).memory_bytes == 48 * 2**30


@pytest.mark.parametrize(
    ("name", "fields", "field"),
    [
        ("card", {**CUSTOM, "vram_gb": -1}, "card.memory_mib"),
        ("card", {**CUSTOM, "peak": 1}, "card.peak"),
        ("card", {"type": "gpu"}, "card.memory_mib"),
        ("../card", CUSTOM, None),
        ("", CUSTOM, None),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_kept(
    home: Path, name: str, fields: dict[str, object], field: str | None
) -> None:
    with pytest.raises(CatalogError) as refused:
        register_hardware(name, fields)
    assert refused.value.place.field == field
    assert list(home.rglob("*.yaml")) == []


def test_a_file_may_say_it_in_these_fields_too(tmp_path: Path) -> None:
    (tmp_path / "accelerators.yaml").write_text(
        "lab:\n  type: gpu\n  peak_flops: 5e12\n  peak_flops_fp16: 50e12\n  mem_gb: 32\n  bandwidth_gbps: 200\n"
    )
    row = Catalog(tmp_path).accelerators["lab"]
    assert (row.fp32_tflops, row.fp16_tflops) == (5.0, 50.0)
    assert row.unified_memory, "without memory of its own it shares the host's"
    assert row.memory_bytes == 32 * 2**30


def test_a_training_of_years_is_told_to_look_at_its_hardware() -> None:
    plan = {"model": {"name": "llama-3-8b"}, "training": {"tokens": 1e12}, "hardware": {"name": "rtx-4090"}}
    found = [note for note in answer(plan_from_data(plan)).estimate.warnings if note.code == "very_long"]
    assert len(found) == 1
    assert "hardware.name" in found[0].detail
