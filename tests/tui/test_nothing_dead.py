"""Every field on the screen changes something, or says why it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.schema import stepped
from capacity_tui.engine.solve.modes import fill
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.results import Field, Kind

TRAINING = "training: {tokens: 1e9, micro_batch: 2, global_batch: 64, seq_len: 2048}\n"
PLANS = {
    "one device": "model: {name: llama-3.2-1b}\n" + TRAINING + "hardware: {name: h100-sxm-80gb}\n",
    "one node": "model: {name: llama-3.1-8b}\n" + TRAINING + "hardware: {name: h100-sxm-80gb, devices: 8}\n"
    "parallelism: {tp: 2, pp: 2, zero: 1}\n",
    "many nodes": "model: {name: llama-3.1-8b}\n" + TRAINING + "hardware: {name: h100-sxm-80gb, devices: 64}\n"
    "parallelism: {tp: 2, pp: 2, zero: 1}\n",
    "lora": "task: finetune\nmodel: {name: llama-3.1-8b}\n"
    "training: {method: lora, tokens: 1e8, micro_batch: 2, global_batch: 32}\n"
    "hardware: {name: h100-sxm-80gb, devices: 2}\n",
    "qlora": "task: finetune\nmodel: {name: llama-3.1-8b}\n"
    "training: {method: qlora, tokens: 1e8, micro_batch: 2, seq_len: 256}\nhardware: {name: rtx-4090}\n",
    "mixture": "model: {name: mixtral-8x7b}\n" + TRAINING + "hardware: {name: h100-sxm-80gb, devices: 64}\n"
    "parallelism: {ep: 8, tp: 2, zero: 1}\n",
    "serving": "task: infer\nmodel: {name: llama-3.1-8b}\n"
    "inference: {engine: vllm, batch: 8}\nhardware: {name: h100-sxm-80gb, devices: 2}\nparallelism: {tp: 2}\n",
    "serving replicas": "task: infer\nmodel: {name: llama-3.1-8b}\n"
    "inference: {engine: vllm, batch: 8}\nhardware: {name: h100-sxm-80gb, devices: 2}\nparallelism: {tp: 1, pp: 1}\n",
    "serving at home": "task: infer\nmodel: {name: llama-3.1-8b}\n"
    "inference: {engine: llamacpp, weights: q4_k_m}\nhardware: {name: rtx-4090}\n",
    "mlp": "model: {name: mlp, spec: {d_in: 784, layers: [512, 256], d_out: 10}}\n"
    "training: {steps: 1000, micro_batch: 64}\nhardware: {name: rtx-4090}\n",
    "resnet": "model: {name: resnet-50}\ntraining: {steps: 1000, micro_batch: 32}\n"
    "hardware: {name: h100-sxm-80gb, devices: 8}\n",
    "regression": "model: {name: linear_regression_qr}\nhardware: {name: CPU_8C_3.5Ghz_baseline}\n",
    "boosting": "model: {name: xgboost_like}\nhardware: {name: rtx-4090}\n",
}
PICKED = {
    "model.name": "gpt2-small",
    "hardware.name": "a100-sxm-80gb",
    "hardware.interconnect": "eth-10",
    "pricing.region": "asia",
}


def central(value: object) -> object:
    """A result without its ranges."""
    if isinstance(value, dict):
        return {key: central(entry) for key, entry in value.items() if key not in ("low", "high", "ranges")}
    return [central(entry) for entry in value] if isinstance(value, list) else value


def figures(document: PlanDocument) -> dict[str, object]:
    filled = fill(document.plan, "balanced", None, document.catalog)
    result = result_as_dict(filled.plan, filled.estimate)
    return {key: central(value) for key, value in result.items() if key not in ("plan", "basis", "warnings")}


def tried(field: Field) -> list[str]:
    """Values near the present one, or all there are."""
    if field.catalogue:
        return [PICKED[field.key]]
    if field.kind is Kind.CHOICE:
        return [choice for choice in field.choices if choice != field.text]
    if field.kind is Kind.TEXT:
        return ["64, 32"] if field.key.endswith("layers") else []
    typed = replace(field, value=field.value if field.value is not None else field.minimum)
    steps = (stepped(typed, direction, big) for big in (False, True) for direction in (1, -1))
    return [text for text in steps if text is not None]


def effects(document: PlanDocument, field: Field, before: dict[str, object]) -> set[str]:
    """What values of a field do: change a figure, are refused with the reason, or nothing. One that does some is enough
    where the field is not said to be idle."""
    found: set[str] = set()
    for text in tried(field):
        if not field.idle and found - {"nothing"}:
            break
        try:
            found.add("changes" if figures(document.edited(field.key, text)) != before else "nothing")
        except CapacityError:
            found.add("refused")
    return found


@pytest.mark.parametrize("name", PLANS)
def test_every_field_changes_something_or_says_why_not(name: str) -> None:
    document = PlanDocument(plan_from_text(PLANS[name], "plan"), None, load_catalog())
    before = figures(document)
    fields = document.fields()
    found = {field: effects(document, field, before) for field in fields}
    assert [field.key for field, did in found.items() if not field.idle and did <= {"nothing"} and tried(field)] == []
    assert [field.key for field, did in found.items() if field.idle and "changes" in did] == []
