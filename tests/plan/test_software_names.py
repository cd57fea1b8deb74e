"""Training software goes by any name: its own, that of what it is built on, or one that nothing is known about."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Answer, estimate_plan
from capacity_tui.engine.plan import UNNAMED, software_id
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.frameworks import framework_files

CATALOG = load_catalog()


def answered(framework: str | None) -> Answer:
    data = {
        "model": {"name": "llama-3-8b"},
        "training": {"framework": framework, "global_batch": 64},
        "parallelism": {"zero": 1},
        "hardware": {"name": "h100-sxm-80gb", "devices": 8},
    }
    return estimate_plan(plan_from_data(data), None, CATALOG)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Megatron-LM", "megatron"),
        ("nanotron", "nanotron"),
        ("InternEvo", "internevo"),
        ("Colossal-AI", "colossalai"),
        ("Axolotl", "transformers"),
        ("TRL (FSDP2)", "transformers"),
        ("LLaMA-Factory v0.9.1", "transformers"),
        ("unsloth 2024.8", "unsloth"),
        ("PyTorch Lightning", "ddp"),
        ("lit-gpt", "litgpt"),
        ("levanter", "maxtext"),
        ("OLMo-core", "torchtitan"),
        ("GPT-NeoX", "deepspeed"),
        ("transformers + deepspeed", "transformers"),
        ("MLX", "mlx"),
        ("our own trainer", UNNAMED),
        ("PyTorch", UNNAMED),
        ("+", UNNAMED),
        ("", UNNAMED),
        (None, UNNAMED),
    ],
)
def test_a_name_stands_for_what_the_software_is_built_on(name: str | None, row: str) -> None:
    assert software_id(name, CATALOG) == row


def test_every_other_name_of_software_leads_to_a_row() -> None:
    assert set(CATALOG.frameworks.aliases.values()) <= set(CATALOG.frameworks)


def test_unknown_software_is_kept_as_written_and_counts_as_unnamed() -> None:
    unknown, unnamed = answered("our own trainer"), answered(None)
    assert unknown.plan.training.framework == "our own trainer"
    assert any("our own trainer counts as" in note for note in unknown.estimate.basis.assumed)
    assert unknown.estimate.computation.step_seconds == unnamed.estimate.computation.step_seconds


def test_known_software_says_what_it_counts_as() -> None:
    found = answered("Axolotl")
    assert found.plan.training.framework == "Axolotl"
    assert any(CATALOG.frameworks["transformers"].name in note for note in found.estimate.basis.assumed)
    assert not any(" counts as " in note for note in answered("transformers").estimate.basis.assumed)


def test_a_row_like_another_takes_what_it_does_not_give() -> None:
    row, pattern = CATALOG.frameworks["nanotron"], CATALOG.frameworks["megatron"]
    assert row.gathered_inputs != pattern.gathered_inputs
    assert row.moe_passes == pattern.moe_passes
    assert row.name == "nanotron"


def test_files_are_for_what_software_is_built_on_and_say_so() -> None:
    resolved = answered("Axolotl").resolved
    files = framework_files(resolved, CATALOG)
    assert "Axolotl: this is for transformers" in files["accelerate.yaml"]
    assert list(framework_files(answered("our own trainer").resolved, CATALOG)) == ["environment.sh"]
