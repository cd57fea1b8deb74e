"""The tool of a file is known by its options, one by one: a file that mostly has others is refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from capacity_tui.engine.catalog import read_yaml
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.imports.options import tool_of
from capacity_tui.engine.plan.imports.sources import read_files

SAMPLES = Path(__file__).parent / "samples"
TOOLS = {
    "accelerate_fsdp.yaml": "accelerate",
    "axolotl_qlora.yml": "axolotl",
    "ds_zero3_offload.json": "deepspeed",
    "llamafactory_lora.yaml": "llamafactory",
    "torchtitan.toml": "torchtitan",
    "training_args.yaml": "trainer",
    "trl_sft.yaml": "trl",
}
UNKNOWN = {
    "sections called as torchtitan's": "training:\n  epochs: 3\n  batch: 64\nmodel:\n  hf: x\n",
    "a file of Oumi": """
model:
  model_name: meta-llama/Llama-3.1-8B
  torch_dtype_str: bfloat16
data:
  train:
    datasets:
      - dataset_name: yahma/alpaca-cleaned
training:
  trainer_type: TRL_SFT
  output_dir: out
  ft_steps: 10
""",
}


def data_of(name: str) -> Any:
    text = (SAMPLES / name).read_text("utf-8")
    return tomllib.loads(text) if name.endswith(".toml") else read_yaml(text).data


def leaf_count(data: object) -> int:
    return sum(map(leaf_count, data.values())) if isinstance(data, dict) and data else 1


def mostly_others(data: dict[str, Any]) -> dict[str, Any]:
    """Return data with more options that no tool knows than there were before."""
    return {**data, **{f"zz_{number}": number for number in range(leaf_count(data) + 1)}}


@pytest.mark.parametrize("name", TOOLS)
def test_a_file_is_of_the_tool_whose_options_it_has(name: str) -> None:
    owner = tool_of(data_of(name))
    assert owner is not None
    assert owner.id == TOOLS[name]


@pytest.mark.parametrize("name", TOOLS)
def test_a_file_of_mostly_unknown_options_is_of_no_known_tool(name: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(mostly_others(data_of(name))))
    with pytest.raises(PlanError) as refused:
        read_files([str(file)])
    assert refused.value.title == "of no known tool"


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_sections_of_a_tool_do_not_make_a_file_its(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(PlanError, match="of no known tool"):
        read_files([str(file)])


def test_of_several_runs_in_a_script_the_first_counts_and_the_others_are_named(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("vllm serve openai/gpt-oss-120b\nvllm serve openai/gpt-oss-120b --tensor-parallel-size 4\n")
    (reading,) = read_files([str(script)])
    assert all(setting.field != "parallelism.tp" or setting.value == 1 for setting in reading.settings)
    (remark,) = reading.unmodelled
    assert "a second command" in remark.why


@pytest.mark.parametrize(("command", "preference"), [("trl dpo", "dpo"), ("trl sft", None), ("trl kto", "kto")])
def test_a_program_says_what_it_trains_for(tmp_path: Path, command: str, preference: str | None) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{command} --model_name_or_path Qwen/Qwen3-8B --output_dir out\n")
    (reading,) = read_files([str(script)])
    said = {setting.field: setting.value for setting in reading.settings}
    assert said.get("training.preference") == preference


def test_a_configuration_that_is_called_by_name_says_what_options_leave_out(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("torchrun -m torchtitan.train --module llama3 --config llama3_70b --training.steps 50\n")
    reading = read_files([str(script)])[-1]
    values: dict[str, object] = {}
    for setting in reading.settings:
        values.setdefault(setting.field, setting.value)
    assert (values["titan_flavor"], values["training.seq_len"], values["parallelism.tp"]) == ("70B", 8192, 8)


def test_a_script_that_only_keeps_options_for_others_is_read_for_them(tmp_path: Path) -> None:
    script = tmp_path / "model.sh"
    script.write_text(
        'COMMON="--num-layers 28 --hidden-size 1024"\nMODEL_OPTIONS="$COMMON --micro-batch-size 2 --swiglu"\n'
    )
    (reading,) = read_files([str(script)])
    values = {setting.field: setting.value for setting in reading.settings}
    assert (reading.tool.id, values["shape.layers"], values["training.micro_batch"]) == ("megatron", 28, 2)
