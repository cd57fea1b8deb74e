"""Everything that a file can say can be said on the screen: lists and tables too, as one typed line."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import all_fields, table_text
from capacity_tui.engine.plan.edit import table_of
from capacity_tui.engine.plan.files import plan_from_data, plan_from_text
from capacity_tui.engine.solve import answer
from capacity_tui.tui.plan_document import PlanDocument

STARTS = (
    "model: {name: llama-3.1-8b}\nhardware: {name: 8xh100}\n",
    "task: finetune\nmodel: {name: llama-3.1-8b}\ntraining: {method: qlora}\nhardware: {name: 8xh100}\n",
    "task: infer\nmodel: {name: llama-3.1-8b}\nhardware: {name: 8xh100}\n",
    "model: {name: mlp}\nhardware: {name: rtx-4090}\n",
    "model: {name: kmeans}\nhardware: {name: rtx-4090}\n",
)
SAID_OTHERWISE = {
    "version": "there is one form",
    "model.config": "the model's field takes a path",
    "training.adapter": "its own fields stand in the list",
    "training.adapter.kind": "the method is the same",
    "scenarios": "plans are pinned as columns by a key",
}


def document(text: str) -> PlanDocument:
    return PlanDocument(plan_from_text(text, "plan"), None, load_catalog())


def test_every_field_of_a_plan_stands_in_the_list() -> None:
    listed = {field.key for text in STARTS for field in document(text).fields()}
    missing = set(all_fields()) - listed - set(SAID_OTHERWISE)
    assert not missing
    assert not listed & set(SAID_OTHERWISE)


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("hardware.spec", "48GiB 180TFLOPs 900GB/s tdp_w=300",
         {"memory_mib": 49152, "bf16_tflops": 180.0, "fp16_tflops": 180.0, "bandwidth_gbs": 900.0, "tdp_w": 300}),
        ("hardware.spec", "{memory_mib: 40960}", {"memory_mib": 40960}),
        ("model.spec", "layers=40, hidden=5120", {"layers": 40, "hidden": 5120}),
    ],
)  # fmt: skip
def test_tables_are_typed_as_one_line(key: str, typed: str, value: object) -> None:
    changed = document(STARTS[0]).edited(key, typed)
    assert changed.plan.value(key) == value
    shown = next(field.text for field in changed.fields() if field.key == key)
    assert document(STARTS[0]).edited(key, shown).plan == changed.plan
    assert changed.edited(key, "auto").plan.value(key) == {}


def test_groups_and_levels_are_typed_as_one_line() -> None:
    mixed = document(STARTS[0]).edited("hardware.groups", "8xh100-sxm-80gb; 4xa100-sxm-80gb per_node=4").plan
    assert [(group.name, group.devices, group.per_node) for group in mixed.hardware.groups] == [
        ("h100-sxm-80gb", 8, None), ("a100-sxm-80gb", 4, 4)
    ]  # fmt: skip
    assert table_text(mixed.hardware.groups) == "8xh100-sxm-80gb; 4xa100-sxm-80gb per_node=4"
    assert answer(mixed).estimate.fits is not None
    racks = document(STARTS[0]).edited("hardware.levels", "rack devices=32 link=ib-ndr; fabric oversubscription=2")
    assert [(level.name, level.devices, level.oversubscription) for level in racks.plan.hardware.levels] == [
        ("rack", 32, 1.0), ("fabric", None, 2.0)
    ]  # fmt: skip
    counts = document(STARTS[0]).edited("scalability.device_counts", "1, 2 16")
    assert counts.plan.scalability.device_counts == (1, 2, 16)


@pytest.mark.parametrize("typed", ["48", "memory_mib=", "wibble", "{a", "memory_mib=lots of"])
def test_what_is_no_table_is_refused_with_a_remedy(typed: str) -> None:
    with pytest.raises(PlanError) as caught:
        answer(document(STARTS[0]).edited("hardware.spec", typed).plan)
    assert caught.value.hint


def test_an_empty_text_is_no_table() -> None:
    assert table_of("hardware.spec", " ", False) == {}
    assert table_of("hardware.levels", " ; ", True) == []
    assert table_text({}) == table_text(()) == table_text(None) == ""
    plan = plan_from_data({"model": {"name": "gpt2"}, "hardware": {"spec": {"fp32_tflops": 1.5e-7, "units": 10**15}}})
    assert table_of("hardware.spec", table_text(plan.hardware.spec), False) == plan.hardware.spec
