"""Plans that learn from preferences, written for other tools: as their training of preferences, or with a remark."""

from __future__ import annotations

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.frameworks import framework_files


def written(framework: str, preference: str) -> dict[str, str]:
    data = {
        "model": {"name": "llama-3.1-8b"},
        "training": {"framework": framework, "method": "lora", "preference": preference, "micro_batch": 1, "steps": 10},
        "hardware": {"name": "h100-sxm-80gb", "devices": 2},
    }
    return dict(framework_files(resolve_plan(plan_from_data(data), load_catalog()), load_catalog()))


@pytest.mark.parametrize(
    ("framework", "preference", "options"),
    [
        ("axolotl", "dpo", {"rl": "dpo", "sample_packing": False}),
        ("axolotl", "orpo", {"rl": "orpo"}),
        ("axolotl", "reward", {"reward_model": True}),
        ("axolotl", "none", {"rl": None, "sample_packing": True}),
        ("llamafactory", "dpo", {"stage": "dpo", "packing": False}),
        ("llamafactory", "orpo", {"stage": "dpo", "pref_loss": "orpo"}),
        ("llamafactory", "reward", {"stage": "rm"}),
        ("llamafactory", "none", {"stage": "sft", "pref_loss": None, "packing": True}),
    ],
)
def test_tools_are_told_what_is_learned_from(framework: str, preference: str, options: dict[str, object]) -> None:
    data = yaml.safe_load(written(framework, preference)[f"{framework}.yaml"])
    assert {name: data.get(name) for name in options} == options


@pytest.mark.parametrize(("framework", "preference"), [("llamafactory", "grpo"), ("torchtune", "dpo")])
def test_what_a_tool_has_no_training_for_is_remarked_on(framework: str, preference: str) -> None:
    assert f"preference {preference}: " in written(framework, preference)[f"{framework}.yaml"]


@pytest.mark.parametrize("preference", ["dpo", "grpo", "reward"])
def test_no_script_of_supervised_training_stands_for_preferences(preference: str) -> None:
    files = written("transformers", preference)
    assert "train.py" not in files
    assert f"preference {preference}: hand these settings to TRL's" in files["training_arguments.yaml"]
    assert "adapter: peft.LoraConfig(r=16)" in files["training_arguments.yaml"]
