"""Every field and every choice is explained in plain English."""

from __future__ import annotations

import re

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.models import family_of, known_models, spec_type_of
from capacity_tui.engine.plan import Plan, PlanField, plan_fields
from capacity_tui.engine.plan.files import plan_from_data

CATALOG = load_catalog()


def _plans() -> dict[str, Plan]:
    """Return one plan of each kind of model and set of parameters: those that share both have the same fields."""
    plans: dict[object, tuple[str, Plan]] = {}
    names = (*(row.id for row in known_models(CATALOG)), "transformer_decoder", "transformer_encoder", "resnet18")
    for name in names:
        plan = plan_from_data({"model": {"name": name}})
        kind = family_of(name, CATALOG).kind
        plans.setdefault((kind, spec_type_of(name, kind, plan.model.spec)), (name, plan))
    adapted = plan_from_data({"model": {"name": "llama-3.1-8b"}, "training": {"method": "lora"}})
    return {**dict(plans.values()), "llama-3.1-8b": adapted}


FIELDS = {
    entry.path: entry
    for name, plan in _plans().items()
    for task in ("train", "finetune", "infer", "fit")
    for entry in plan_fields(plan, family_of(name, CATALOG).kind, task, CATALOG)
    if entry.knob.kind != "table"
}


@pytest.mark.parametrize("entry", FIELDS.values(), ids=FIELDS.keys())
def test_a_field_is_explained_in_two_sentences(entry: PlanField) -> None:
    assert len(re.findall(r"[.!](?:\s|$)", entry.knob.help)) >= 2
    assert len(entry.knob.help) < 260


@pytest.mark.parametrize("entry", FIELDS.values(), ids=FIELDS.keys())
def test_every_closed_choice_has_words(entry: PlanField) -> None:
    assert [choice for choice in entry.knob.choices if not entry.choices.get(choice)] == []


def test_batches_of_networks_count_samples() -> None:
    plan = plan_from_data({"model": {"name": "mlp"}})
    units = {entry.path: entry.knob.unit for entry in plan_fields(plan, "network", "train")}
    assert units["training.micro_batch"] == units["training.global_batch"] == "samples"


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen2.5-72b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("Llama-3.1-8B-Instruct-Q4_K_M.gguf", "llama-3.1-8b"),
        ("llama-3.1-70b-chat", "llama-3.1-70b"),
        ("Llama-3.1-70B-Insturct", None),
        ("meta-llama/Llama-3.1-70B-Insturct", "llama-3.1-70b"),
        ("teknium/OpenHermes-2.5-Mistral-7B", "mistral-7b-v0.1"),
        ("Intel/Qwen3.5-122B-A10B-int4-AutoRound", "qwen3.5-122b-a10b"),
        ("ales/whisper-small-belarusian", "whisper-small"),
        ("models/DeepSeek-V4-Flash-IQ2XXS-w2Q2K-chat-v2.gguf", "deepseek-v4-flash"),
        ("models/DeepSeek-V4-Flash-IQ2XXS-w2Q2K-chat-v2", None),
        ("acme/Mistral-7B-Vision", None),
        ("acme/Llama-3.1-8B-A3B", None),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", "qwen3-vl-30b-a3b"),
        ("Qwen/Qwen2-VL-30B-A3B-Instruct", None),
        ("instruct", None),
        ("/", None),
    ],
)
def test_names_of_variants_stand_for_their_model(name: str, row: str | None) -> None:
    table = load_catalog().architectures
    assert table.find_id(name) == row
    if row is None and name.endswith("Insturct"):
        assert "llama-3.1-70b" in table.nearest(name)


def test_every_model_is_still_found_by_its_own_names() -> None:
    table = load_catalog().architectures
    for row in table.values():
        assert table.find_id(row.id) == row.id
        assert not table.is_variant(row.id)
