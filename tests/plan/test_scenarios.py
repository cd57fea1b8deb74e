"""Plans beside a plan: pinned, renamed, taken away, written, read, checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import Plan, edited, pinned, renamed, unpinned
from capacity_tui.engine.plan.files import dump_plan, load_plan, plan_from_text, read_source
from capacity_tui.engine.plan.sections import MOST_SCENARIOS
from capacity_tui.engine.solve import answer, faults

BASE = plan_from_text("model: {name: gpt2}\nhardware: {name: rtx-4090}\n", "base")
OTHER = plan_from_text("task: infer\nmodel: {name: llama-3.1-8b}\nhardware: {name: 2xh100-sxm-80gb}\n", "other")
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="."), min_size=1, max_size=40
)


def read(text: str) -> Plan:
    return plan_from_text(text, "plan")


@settings(max_examples=30, deadline=None)
@example(["<<"])
@given(st.lists(NAMES, min_size=1, max_size=MOST_SCENARIOS, unique=True))
def test_what_is_pinned_survives_a_file(names: list[str]) -> None:
    plan = edited(BASE, {"scenarios": dict.fromkeys(names, OTHER)}).plan
    again = read(dump_plan(plan))
    assert list(again.scenarios) == names
    for scenario in again.scenarios.values():
        assert answer_of(scenario) == answer_of(OTHER)
    assert dump_plan(again) == dump_plan(plan)


def answer_of(plan: Plan) -> object:
    return plan.task, plan.model, plan.hardware.name, plan.hardware.devices, plan.inference.batch


def test_pins_get_letters_and_other_edits_leave_them_alone() -> None:
    plan = pinned(pinned(BASE, OTHER), BASE)
    assert list(plan.scenarios) == ["A", "B"]
    assert plan.scenarios["A"] == OTHER
    assert list(pinned(unpinned(plan, "A"), OTHER).scenarios) == ["B", "A"]
    changed = edited(plan, {"model.name": "llama-3.1-8b", "hardware.name": "h100-sxm-80gb"}).plan
    assert changed.scenarios == plan.scenarios
    assert pinned(plan, plan).scenarios["C"].scenarios == {}, "a pin has no pins"


def test_a_pin_is_renamed_in_its_place() -> None:
    plan = renamed(pinned(pinned(BASE, OTHER), BASE), "A", " LoRA 4×H200 ")
    assert list(plan.scenarios) == ["LoRA 4×H200", "B"]
    for refused in ("B", "", "a.b", "x" * 41):
        with pytest.raises(PlanError):
            renamed(plan, "LoRA 4×H200", refused)


def test_there_are_no_more_than_may_be() -> None:
    plan = BASE
    for _ in range(MOST_SCENARIOS):
        plan = pinned(plan, OTHER)
    with pytest.raises(PlanError, match="up to 8"):
        pinned(plan, OTHER)


def test_a_plan_with_pins_gives_the_same_answer() -> None:
    alone, beside = answer(BASE), answer(pinned(BASE, OTHER))
    assert alone.estimate.memory.reserved_bytes == beside.estimate.memory.reserved_bytes
    assert alone.plan.plain_data() == beside.plan.plain_data()


def test_pins_in_the_older_form_are_read_too() -> None:
    plan = read(
        "version: 1\nmodel: {name: gpt2}\nhardware: {name: rtx-4090}\n"
        "scenarios:\n  old:\n    version: 0\n    model: {name: gpt2, spec: {batch_size: 4}, optimization: adam}\n"
        "    hardware: {name: rtx-4090, parallel_devices: 2}\n  fit:\n    model: {name: linear_regression_qr}\n"
    )
    old = plan.scenarios["old"]
    assert (old.training.micro_batch, old.training.optimizer, old.hardware.devices) == (4, "adamw", 2)
    assert plan.scenarios["fit"].task == "fit"


@pytest.mark.parametrize(
    ("beside", "line", "field"),
    [
        ("  A: {model: {name: gpt2}, training: {micro_batch: 0}}", 4, "scenarios.A.training.micro_batch"),
        ("  A: {model: {name: gpt2}, trainings: {}}", 4, "scenarios.A.trainings"),
        ("  A: {model: {name: gpt2, spec: {layers: -1}}}", 4, "scenarios.A.model.spec.layers"),
        ("  A: {version: 9, model: {name: gpt2}}", 4, "scenarios.A.version"),
        ("  A: {hardware: {name: rtx-4090}}", 4, "scenarios.A.model"),
        ("  A: 5", 4, "scenarios.A"),
        ("  A: {model: {name: gpt2}, scenarios: {B: {model: {name: gpt2}}}}", None, None),
        ("  a.b: {model: {name: gpt2}}", None, None),
    ],
)
def test_what_is_wrong_in_a_pin_is_told_with_its_place(
    beside: str, line: int | None, field: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"model: {{name: gpt2}}\nhardware: {{name: rtx-4090}}\nscenarios:\n{beside}\n", encoding="utf-8")
    with pytest.raises(PlanError) as error:
        load_plan(path)
    if field is not None:
        assert (error.value.place.line, error.value.place.field) == (line, field)


def test_validate_estimates_pins_too(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    beside = "scenarios:\n  A: {model: {name: gpt2}, hardware: {name: none}}\n"
    path.write_text(f"model: {{name: gpt2}}\nhardware: {{name: rtx-4090}}\n{beside}", encoding="utf-8")
    (fault,) = faults(read_source(str(path)), load_catalog(), lambda _: None)
    assert fault.place.field == "scenarios.A.hardware.name"
    assert fault.place.line == 4
