"""Unlike devices and nodes: which a plan uses, at whose pace, and what it says about it."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import Cluster, resolve_cluster
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import HardwareSection, PricingSection
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve import answer

CATALOG = load_catalog(Path("none"))
NAMES = ("h100-sxm-80gb", "a100-sxm-80gb", "rtx-4090", "l4", "v100-sxm2-16gb")


def cluster(*groups: dict[str, object], **hardware: object) -> Cluster:
    section = HardwareSection.model_validate({"groups": groups, **hardware})
    return resolve_cluster(section, PricingSection(), CATALOG)


def group(name: str, devices: int, per_node: int | None = None) -> dict[str, object]:
    return {"name": name, "devices": devices, "per_node": per_node}


def arithmetic(found: Cluster) -> float:
    return float(found.device.peaks[found.device.half_precision]) * float(found.devices)


def test_one_group_is_the_hardware_of_its_name() -> None:
    found = cluster(group("h100-sxm-80gb", 16, 8))
    plain = resolve_cluster(HardwareSection(name="h100-sxm-80gb", devices=16, per_node=8), PricingSection(), CATALOG)
    assert (found.device, found.devices, found.per_node) == (plain.device, plain.devices, plain.per_node)
    assert not found.mix_reason


def test_a_few_slow_devices_are_left_out_and_the_plan_says_so() -> None:
    found = cluster(group("h100-sxm-80gb", 8), group("l4", 2))
    assert (found.device.id, found.devices) == ("h100-sxm-80gb", 8)
    assert "2 x l4 left out" in found.mix_reason
    assert found.mix_reason in found.assumed


def test_devices_of_a_kind_work_together_at_the_pace_of_the_slowest() -> None:
    found = cluster(group("h100-sxm-80gb", 8), group("a100-sxm-80gb", 32))
    assert found.devices == 40
    assert found.device.peaks["bf16"] == CATALOG.accelerators["a100-sxm-80gb"].peak_flops("bf16_tflops")
    assert "fp8" not in found.device.peaks
    assert found.words == "8 x h100-sxm-80gb + 32 x a100-sxm-80gb at the pace of the slowest"
    assert found.price.usd_per_hour is not None
    assert found.price.source.count("cheapest") == 2


def test_the_plan_may_ask_for_all_or_for_one_group() -> None:
    groups = group("h100-sxm-80gb", 8), group("l4", 2)
    together, alone = cluster(*groups, mixed="all"), cluster(*groups, mixed="one")
    assert (together.devices, alone.devices) == (10, 8)
    assert together.device.memory_bytes == float(CATALOG.accelerators["l4"].memory_bytes)
    assert arithmetic(together) < arithmetic(alone)


def test_nodes_of_unequal_size_count_as_the_smallest() -> None:
    found = cluster(group("h100-sxm-80gb", 16, 8), group("h100-sxm-80gb", 8, 4))
    assert (found.devices, found.per_node) == (24, 4)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 64)), min_size=1, max_size=4))
def test_the_best_is_never_slower_than_either_choice_nor_larger_than_all(rows: list[tuple[str, int]]) -> None:
    groups = [group(name, devices) for name, devices in rows]
    best, every, one = (cluster(*groups, mixed=how) for how in ("best", "all", "one"))
    assert arithmetic(best) == max(arithmetic(every), arithmetic(one))
    assert every.devices == sum(devices for _, devices in rows)
    sizes = [float(CATALOG.accelerators[name].memory_bytes) for name, _ in rows]
    assert float(every.device.memory_bytes or 0) == min(sizes)


def test_an_answer_warns_and_the_headline_names_the_devices() -> None:
    plan = plan_from_data(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"micro_batch": 1},
            "hardware": {"groups": [group("a100-sxm-80gb", 8), group("a100-sxm-40gb", 8)]},
        }
    )
    found = answer(plan, None, CATALOG)
    result = result_as_dict(found.plan, found.estimate)
    assert result["basis"]["devices"].startswith("8 x a100-sxm-80gb + 8 x a100-sxm-40gb")
    assert result["memory"]["capacity_bytes"] == CATALOG.accelerators["a100-sxm-40gb"].memory_bytes
    assert "mixed_devices" in {note["code"] for note in result["warnings"]}
    assert answer(found.plan, None, CATALOG).estimate.basis.devices == found.estimate.basis.devices


def test_a_group_without_a_known_name_is_refused_where_it_stands() -> None:
    with pytest.raises(PlanError) as caught:
        cluster(group("h100-sxm-80gb", 8), group("a100-sxm-80bg", 8))
    assert caught.value.place.field == "hardware.groups.1.name"
    assert "a100-sxm-80gb" in caught.value.hint
    with pytest.raises(PlanError, match="none of the groups"):
        plan_from_data({"model": {"name": "gpt2"}, "hardware": {"name": "l4", "groups": [group("a10", 1)]}})
