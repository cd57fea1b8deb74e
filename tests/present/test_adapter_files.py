"""Files that fine-tune adapters: a script for TRL and PEFT, and those of Axolotl, LLaMA-Factory and torchtune."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import ResolvedPlan, resolve_plan
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present.frameworks import adapter_tools, framework_files

OPTIONS = yaml.safe_load((Path(__file__).parent / "tool_options.yaml").read_text("utf-8"))
METHODS = ("lora", "qlora", "dora")
BATCHES = {
    "sft_config.yaml": ("per_device_train_batch_size", "gradient_accumulation_steps"),
    "axolotl.yaml": ("micro_batch_size", "gradient_accumulation_steps"),
    "llamafactory.yaml": ("per_device_train_batch_size", "gradient_accumulation_steps"),
    "torchtune.yaml": ("batch_size", "gradient_accumulation_steps"),
}


def tuned(method: str = "lora", devices: int = 1, **sections: Any) -> ResolvedPlan:
    training = {"method": method, "micro_batch": 2, "global_batch": 16 * devices, "steps": 100,
                **sections.pop("training", {})}  # fmt: skip
    hardware = {"name": "h100-sxm-80gb", "devices": devices, "per_node": 8}
    data = {"task": "finetune", "model": {"name": "llama-3.1-8b"}, "training": training, "hardware": hardware}
    return resolve_plan(Plan.model_validate({**data, **sections}), load_catalog())


def files_of(plan: ResolvedPlan, tool: str | None = None) -> Mapping[str, str]:
    return framework_files(plan, load_catalog(), (), tool)


def calls(script: str) -> dict[str, dict[str, Any]]:
    """Return what a script calls by name, with the arguments it gives as they are written."""
    found = {}
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found[node.func.id] = {str(word.arg): ast.unparse(word.value) for word in node.keywords}
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"devices": 4, "parallelism": {"zero": 3}},
        {"devices": 4, "parallelism": {"zero": 2, "offload": "optimizer"}},
        {"devices": 16, "parallelism": {"zero": 3, "tp": 2, "cp": 2}},
        {"training": {"loss": "fused", "optimizer": "adamw8bit", "checkpointing": "full", "compile": True}},
        {"training": {"activation_offload": "all", "precision": "fp16", "document_tokens": 512, "learning_rate": 1e-4}},
    ],
)
def test_every_tool_is_told_in_its_own_words(method: str, variant: dict[str, Any]) -> None:
    plan = tuned(method, **variant)
    tools = adapter_tools(plan, load_catalog())
    assert tools == ("TRL", "Axolotl", "LLaMA-Factory", "torchtune")
    for tool in tools:
        for name, text in files_of(plan, tool).items():
            if name in BATCHES:
                data = yaml.safe_load(text)
                micro, steps = (data[key] for key in BATCHES[name])
                # TRL and LLaMA-Factory split no layer: those devices take data.
                split = int(plan.plan.parallelism.tp or 1) if tool in {"TRL", "LLaMA-Factory"} else 1
                assert micro * steps * split * int(plan.plan.parallelism.dp or 1) == plan.plan.training.global_batch
            if name == "train.py":
                for what, given in calls(text).items():
                    if what in OPTIONS:
                        assert set(given) <= set(OPTIONS[what]["options"]), what


@pytest.mark.parametrize("method", METHODS)
def test_every_tool_has_the_adapters_of_the_plan(method: str) -> None:
    plan = tuned(method, training={"adapter": {"kind": method, "rank": 64, "targets": "attention"}})
    script = calls(files_of(plan)["train.py"])
    assert script["LoraConfig"]["r"] == "64"
    assert script["LoraConfig"]["target_modules"] == "['q_proj', 'k_proj', 'v_proj', 'o_proj']"
    assert ("use_dora" in script["LoraConfig"]) == (method == "dora")
    assert ("BitsAndBytesConfig" in script) == (method == "qlora")
    axolotl = yaml.safe_load(files_of(plan, "Axolotl")["axolotl.yaml"])
    assert (axolotl["adapter"], axolotl["load_in_4bit"]) == (("qlora", True) if method == "qlora" else ("lora", False))
    assert axolotl["lora_target_modules"] == ["q_proj", "k_proj", "v_proj", "o_proj"]
    factory = yaml.safe_load(files_of(plan, "LLaMA-Factory")["llamafactory.yaml"])
    assert (factory["lora_rank"], factory["use_dora"]) == (64, method == "dora")
    assert factory.get("quantization_bit") == (4 if method == "qlora" else None)
    tune = yaml.safe_load(files_of(plan, "torchtune")["torchtune.yaml"])["model"]
    kind = "qlora" if method == "qlora" else "lora"
    assert tune["_component_"] == f"torchtune.models.llama3_1.{kind}_llama3_1_8b"
    assert (tune["lora_rank"], tune["apply_lora_to_mlp"]) == (64, False)


@pytest.mark.parametrize(
    ("named", "file"),
    [("axolotl", "axolotl.yaml"), ("LLaMA-Factory", "llamafactory.yaml"), ("llamafactory", "llamafactory.yaml"),
     ("torchtune", "torchtune.yaml"), ("trl", "train.py"), (None, "train.py")],
)  # fmt: skip
def test_the_software_that_a_plan_names_decides(named: str | None, file: str) -> None:
    assert file in files_of(tuned(training={"framework": named}))


def test_what_the_plan_leaves_out_and_a_tool_needs_is_said() -> None:
    for tool in adapter_tools(tuned(), load_catalog()):
        told = "\n".join(files_of(tuned(), tool).values())
        assert "the plan gives no learning rate: 0.0002 is written" in told
        assert "the plan gives no alpha" in told


def test_a_base_that_is_sharded_is_stored_in_the_type_that_moves() -> None:
    script = calls(files_of(tuned("qlora", 4, parallelism={"zero": 3}))["train.py"])
    assert script["BitsAndBytesConfig"]["bnb_4bit_quant_storage"] == "torch.bfloat16"
    assert "bnb_4bit_quant_storage" not in calls(files_of(tuned("qlora"))["train.py"])["BitsAndBytesConfig"]


def test_only_plans_with_adapters_have_their_tools() -> None:
    assert adapter_tools(tuned("full"), load_catalog()) == ()
    assert "train.py" not in files_of(tuned("full"))


def test_a_model_that_is_no_name_is_asked_for(tmp_path: Path) -> None:
    config = tmp_path / "my model's" / "config.json"
    config.parent.mkdir()
    config.write_text(
        '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,'
        ' "num_attention_heads": 2, "vocab_size": 100}'
    )
    script = files_of(tuned(model={"config": str(config)}))["train.py"]
    ast.parse(script)
    assert 'MODEL = os.environ["MODEL"]' in script


@pytest.mark.parametrize("method", ["full", "lora"])
def test_no_file_of_a_decoder_is_written_for_a_model_that_listens(method: str) -> None:
    plan = tuned(method, model={"name": "whisper-small"}, training={"precision": "fp16", "framework": "transformers"})
    assert adapter_tools(plan, load_catalog()) == ()
    files = files_of(plan)
    assert "train.py" not in files
    written = files["training_arguments.yaml"]
    assert "AutoModelForSpeechSeq2Seq" in written
    assert "Seq2SeqTrainingArguments" in written
    assert "CausalLM" not in written
