"""LoRA, QLoRA and the rest from the screen: one field, and a journey in few keys."""

from __future__ import annotations

import pytest
from flow import KEY_NAMES, settle

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import dump_plan, plan_from_data, plan_from_text
from capacity_tui.engine.solve import answer
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.views.plan.screen import PlanScreen

BASE = {"model": {"name": "llama-3.1-8b"}, "hardware": {"name": "8xH100-SXM"}}


@pytest.mark.parametrize("method", ["lora", "qlora", "dora"])
def test_a_method_is_short_for_its_adapter(method: str) -> None:
    short = plan_from_data({**BASE, "training": {"method": method}})
    long = plan_from_data({**BASE, "training": {"adapter": {"kind": method}}})
    assert short == long
    assert answer(short).plan.task == "finetune"
    assert plan_from_text(dump_plan(short), "plan") == short
    kept = plan_from_data({**BASE, "training": {"method": method, "adapter": {"rank": 64}}})
    assert kept.training.adapter is not None
    assert (kept.training.adapter.kind, kept.training.adapter.rank) == (method, 64)


@pytest.mark.parametrize(
    "training",
    [{"method": "full", "adapter": {"rank": 8}}, {"method": "lora", "adapter": {"kind": "qlora"}}, {"method": "lola"}],
)
def test_methods_that_contradict_the_adapter_are_refused(training: dict[str, object]) -> None:
    with pytest.raises(PlanError):
        plan_from_data({**BASE, "training": training})


def test_methods_and_adapters_stay_together_when_one_is_changed() -> None:
    plan = plan_from_data({**BASE, "training": {"method": "lora", "adapter": {"rank": 64}}})
    qlora = edited(plan, {"training.method": "qlora"}).plan
    assert qlora.training.adapter is not None
    assert (qlora.training.adapter.kind, qlora.training.adapter.rank) == ("qlora", 64)
    assert edited(plan, {"training.adapter.kind": "dora"}).plan.training.method == "dora"
    full = edited(plan, {"training.method": "full"}).plan
    assert (full.training.method, full.training.adapter) == ("full", None)
    assert edited(plan, {"training.adapter": None}).plan.training.method is None


def test_the_field_stands_below_the_task_and_brings_its_own() -> None:
    document = PlanDocument(plan_from_data({**BASE, "task": "finetune"}), None, load_catalog())
    keys = [field.key for field in document.fields()]
    assert keys[keys.index("task") + 1] == "training.method"
    assert "training.adapter.rank" not in keys
    lora = document.edited("training.method", "lora")
    assert {"training.adapter.rank", "training.adapter.targets", "training.quantization"} <= {
        f.key for f in lora.fields()
    }
    opened = {field.key for field in lora.fields() if field.is_auto}
    assert {"training.micro_batch", "training.checkpointing", "parallelism.zero"} <= opened
    training = PlanDocument(plan_from_data({**BASE, "task": "train"}), None, load_catalog())
    assert not {"training.method", "training.quantization"} & {field.key for field in training.fields()}


async def test_lora_of_a_large_model_takes_few_keys() -> None:
    """From the first screen on 8 H100 to LoRA of Llama 3.1 70B at 4k on 50 M tokens, in at most 25 keys."""
    model, sequence, tokens = [*"3.1-70", "enter"], [*"4k", "enter"], [*"50M", "enter"]
    steps = [["enter", *model], ["j", "+"], ["j", "+"], ["j", "e"], sequence, ["j", "e"], tokens]
    assert sum(map(len, steps)) <= 25
    app = CapacityApp(accelerator="8xH100-SXM")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for keys in steps:
            await pilot.press(*(KEY_NAMES.get(key, key) for key in keys))
        await settle(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, PlanScreen)
        document = app.session.store.document
        assert isinstance(document, PlanDocument)
        plan = document.plan
    assert plan.model.name == "llama-3.1-70b"
    assert (plan.task, plan.training.method, plan.hardware.devices) == ("finetune", "lora", 8)
    assert (plan.training.seq_len, plan.training.tokens) == (4096, 50e6)
    assert answer(plan).estimate.fits
