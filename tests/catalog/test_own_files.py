"""Files of the user's own: what they add and override, and how faults in them are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import Catalog, load_catalog, register_hardware
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError, CatalogError
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan import HardwareSection, PricingSection, refuse_unknown_names
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer

WithOwn = Callable[..., Catalog]


def test_a_field_is_replaced_and_the_others_stay(with_own: WithOwn) -> None:
    catalog = with_own(accelerators="rtx-4090:\n  tdp_w: 320\n")
    row = catalog.accelerators.find("4090")
    assert row.tdp_w == 320
    assert row.bf16_tflops == 165.2
    assert row.provenance == "user file"
    assert row.overrides == ("tdp_w",)
    assert catalog.accelerators["rtx-3090"].provenance == "catalogue"
    assert catalog.problems == ()


def test_a_block_is_merged_field_by_field(with_own: WithOwn) -> None:
    catalog = with_own(modes="balanced:\n  reserve:\n    system_gb: 8\n")
    assert catalog.modes["balanced"].reserve.system_gb == 8
    assert catalog.modes["balanced"].reserve.context_gb == 1.5


def test_a_row_is_added_with_defaults(with_own: WithOwn, shipped: Catalog) -> None:
    catalog = with_own(
        accelerators="my-gpu:\n  vendor: me\n  memory_mib: 24576\n  bf16_tflops: 100\n",
        aliases="accelerators:\n  mine: my-gpu\n",
    )
    row = catalog.accelerators.find("MINE")
    assert row.id == "my-gpu"
    assert row.source == "user file accelerators.yaml"
    assert len(catalog.accelerators) == len(shipped.accelerators) + 1
    assert "my-gpu" in list(catalog.accelerators)


def test_an_own_vendors_name_may_be_left_out_or_put_in_front(with_own: WithOwn) -> None:
    catalog = with_own(
        accelerators="acme-one:\n  vendor: Acme\n  name: Acme One\n  memory_mib: 1024\n\n"
        "two:\n  vendor: Acme\n  name: Two\n  memory_mib: 1024\n"
    )
    assert catalog.accelerators.find("one").id == "acme-one"
    assert catalog.accelerators.find("ACME Two").id == "two"


def test_a_bad_row_is_named_and_the_rest_loads(with_own: WithOwn) -> None:
    catalog = with_own(
        accelerators="good:\n  vendor: me\n  memory_mib: 1024\n\n"
        "bad:\n  vendor: me\n  memory_mib: lots\n\n"
        "rtx-4090:\n  tpd_w: 300\n"
    )
    assert "good" in catalog.accelerators
    assert "bad" not in catalog.accelerators
    assert catalog.accelerators["rtx-4090"].tdp_w == 450
    bad, misspelt = catalog.accelerators.problems
    assert (bad.place.line, bad.place.field) == (7, "bad.memory_mib")
    assert str(bad.place.file).endswith("accelerators.yaml")
    assert (misspelt.place.line, misspelt.place.field) == (10, "rtx-4090.tpd_w")
    assert "tdp_w" in misspelt.hint


def test_nested_fields_suggest_their_own_names(with_own: WithOwn) -> None:
    (problem,) = with_own(modes="extreme:\n  reserve:\n    spike: 0.2\n").modes.problems
    assert "spikes" in problem.hint
    assert problem.place.line == 3


def test_broken_files_are_problems_not_failures(with_own: WithOwn, shipped: Catalog) -> None:
    catalog = with_own(accelerators="a: {}\na: {}\n", links="- just\n- a list\n", modes="{", optimizers="adamw: fast\n")
    assert len(catalog.accelerators) == len(shipped.accelerators)
    assert [problem.place.line for problem in catalog.accelerators.problems] == [2]
    assert len(catalog.links.problems) == len(catalog.modes.problems) == len(catalog.optimizers.problems) == 1
    assert len(catalog.problems) == 4
    assert all("\n" not in problem.one_line() for problem in catalog.problems)


def test_reserved_fields_and_lost_aliases(with_own: WithOwn) -> None:
    catalog = with_own(links="nvlink-4:\n  provenance: catalogue\n", aliases="links:\n  fast: warp-drive\nwarp: 9\n")
    assert len(catalog.links.problems) == 2
    assert catalog.links.find_id("fast") is None
    assert len(catalog.problems) == 3


def test_a_folder_of_own_files(with_own: WithOwn, tmp_path) -> None:
    folder = tmp_path / "processors"
    folder.mkdir()
    (folder / "mine.yaml").write_text("my-cpu:\n  vendor: me\n  cores: 12\n")
    assert with_own().processors["my-cpu"].cores == 12


def test_a_name_in_an_own_file_that_is_not_a_file(with_own: WithOwn, tmp_path) -> None:
    (tmp_path / "links.yaml").mkdir()
    (problem,) = with_own().links.problems
    assert "not a file" in problem.title


LEFT_OUT = "what you have under that name cannot be used: .*"


@pytest.mark.parametrize(
    ("files", "name", "told"),
    [
        ({"accelerators": "zeta:\n  tdp_w: -7\n"}, "Zeta", "accelerators.yaml:1: zeta.vendor"),
        ({"clusters/lab": "groups: [[["}, "lab", "lab.yaml:2: not valid YAML"),
    ],
)
def test_hardware_that_was_left_out_is_told_with_the_reason(
    files: dict[str, str], name: str, told: str, with_own: WithOwn
) -> None:
    with pytest.raises(CapacityError, match=LEFT_OUT + told):
        with_own(**files).find_hardware(name)


def test_links_models_and_optimizers_that_were_left_out_are_told_with_the_reason(with_own: WithOwn) -> None:
    texts = {"links": "my-net:\n  gbs: fast\n", "architectures": "zeta:\n  layers: -3\n", "optimizers": "sofia: 7\n"}
    catalog = with_own(**texts)
    plan = plan_from_data({"model": {"name": "llama-3.1-8b"}, "training": {"optimizer": "sofia"}})
    for look in (
        lambda: catalog.links.find("my-net"),
        lambda: family_of("zeta", catalog),
        lambda: refuse_unknown_names(plan, catalog),
    ):
        with pytest.raises(CapacityError, match=LEFT_OUT):
            look()


def test_files_that_no_table_reads_are_told(with_own: WithOwn, tmp_path: Path) -> None:
    catalog = with_own(models="", links="", **{"model/mine": ""})
    (tmp_path / "optimizers.yml").write_text("")
    told = [problem.one_line().removeprefix(f"{tmp_path}/") for problem in catalog.problems]
    assert [line.partition(":")[0] for line in told] == ["model/mine.yaml", "models.yaml", "optimizers.yml"]
    assert "accelerators, algorithms, aliases, architectures" in told[1]
    assert told[2].endswith("call it optimizers.yaml")


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
