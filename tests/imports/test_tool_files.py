"""Files of inference engines and of tools that train: each says the plan that it would run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import refuse_unknown_names
from capacity_tui.engine.plan.options.tools import tools
from capacity_tui.engine.solve.modes import fill

SAID: Mapping[str, Mapping[str, Any]] = yaml.safe_load((Path(__file__).parent / "samples" / "plans.yaml").read_text())

MEGATRON = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 2 --seq-length 4096 --bf16"


@pytest.mark.parametrize("name", SAID)
def test_a_file_says_the_plan_that_it_runs(read, name: str) -> None:
    hardware = None if "hardware.name" in SAID[name] else "h100-sxm-80gb"
    devices = None if "hardware.devices" in SAID[name] else 4
    found = read(name, model__name=None, hardware__name=hardware, hardware__devices=devices)
    assert {path: found.plan.value(path) for path in SAID[name]} == SAID[name]
    assert found.clashes == ()
    assert not [remark for reading in found.readings for remark in (*reading.unknown, *reading.unmodelled)]
    fill(found.plan, "balanced", None, load_catalog())


SERVERS = {
    "vllm serve meta-llama/Llama-3.1-8B --kv-cache-dtype {}": {
        "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "fp8_inc": "fp8", "fp8_per_token_head": "fp8", "bfloat16": "bf16",
        "int8_per_token_head": "int8", "int4_per_token_head": "kv4", "nvfp4": "kv4",
    },
    "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B {}": {
        "--kv-cache-dtype fp8_e5m2": "fp8", "--kv-cache-dtype fp4_e2m1": "kv4", "--int8-kv-cache": "int8",
    },
    "llama-server -hf ggml-org/Meta-Llama-3.1-8B-Q4_0-GGUF -c 4096 -ctk {0} -ctv {0}": {
        "f16": "fp16", "q8_0": "q8_0", "q4_0": "q4_0", "q4_1": "q4_1", "q5_0": "q5_0", "q5_1": "q5_1",
        "iq4_nl": "iq4_nl",
    },
    "lmdeploy serve api_server meta-llama/Llama-3.1-8B --quant-policy {}": {"8": "int8", "4": "kv4"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "kept"),
    [(command.format(word), kept) for command, caches in SERVERS.items() for word, kept in caches.items()],
)
def test_the_cache_of_a_server_is_kept_as_its_command_says(written, command: str, kept: str) -> None:
    imported = written("serve.sh", command, model__name=None)
    assert imported.plan.inference.kv_cache == kept
    assert not [remark for reading in imported.readings for remark in (*reading.unknown, *reading.unmodelled)]


def test_what_a_recipe_is_begun_with_is_changed_by_what_it_assigns(written) -> None:
    recipe = """
from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _peft_common

def tuned_config():
    cfg = _peft_common()
    name = "Qwen/Qwen3-8B"
    cfg.model = AutoBridge.from_hf_pretrained(name).to_megatron_provider(load_weights=False)
    cfg.train.global_batch_size = 16
    return cfg
"""
    plan = written("recipe.py", recipe, model__name=None).plan
    assert (plan.model.name, plan.task, plan.training.method) == ("qwen3-8b", "finetune", "lora")
    assert (plan.training.global_batch, plan.training.micro_batch, plan.training.adapter.rank) == (16, 1, 32)


def test_options_that_are_misspelt_are_told_with_their_line(written) -> None:
    found = written("serve.sh", "vllm serve gpt2 \\\n  --kv-cach-dtype fp8\n", model__name=None)
    [remark] = found.readings[0].unknown
    assert (remark.place.line, remark.place.field, remark.why) == (2, "--kv-cach-dtype", "kv_cache_dtype")


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("TP=2\nvllm serve gpt2 -tp $TP\n", "parallelism.tp", 2),
        ("vllm serve gpt2 -tp ${TP:-2}\n", "parallelism.tp", 2),
        ("vllm serve gpt2 -tp $TP\n", "parallelism.tp", 1),
        ("A=(--max-num-seqs 8)\nA+=(-tp 2)\nvllm serve gpt2 ${A[@]} -tp 2", "parallelism.tp", 2),
        ("OPTS=\"-tp 2 --max-num-seqs 8\"\npython -m vllm.entrypoints.openai.api_server --model gpt2 $OPTS",
         "inference.concurrency", 8),
        ("vllm serve gpt2 --max-num-seqs=8 # --max-num-seqs 9", "inference.concurrency", 8),
        ("#!/bin/sh\nset -e\nexec vllm serve TheBloke/Llama-2-7B-AWQ", "inference.weights", "awq-4"),
        ("vllm serve gpt2 --enable-expert-parallel -tp 4", "parallelism.ep", 4),
        ("llama-server -m x-7b-Q8_0.gguf -ngl 20 -c 4096 -np 1", "inference.gpu_layers", 20),
        ("llama-server -m x-7b-Q8_0.gguf -c 4096 --n-cpu-moe 24", "inference.host_expert_layers", 24),
        ("llama-server -m x-7b-Q8_0.gguf -c 4096 -cmoe", "inference.host_expert_layers", 999),
        ("llama-server -m x-7b-Q8_0.gguf -c 4096 -ot '.ffn_.*_exps.=CPU'", "inference.host_expert_layers", 999),
        ("llama-server -m x-Q8_0.gguf -c 4096 -ot 'blk.[0-9].ffn_.*_exps.=CPU'", "inference.host_expert_layers", 10),
        ("llama-server -m x-Q8_0.gguf -c 4096 -ot 'blk.(3|1[0-4]).ffn_.*_exps=CPU'", "inference.host_expert_layers", 6),
        ("llama-server -m x-Q8_0.gguf -c 4096 -ot 'blk.(1|2).*=CPU'", "inference.host_expert_layers", None),
        ("llama-server -m x-7b-Q8_0.gguf -c 4096 -ot 'ffn_(up|down)_exps=CPU'", "inference.host_expert_layers", None),
        ("llama-server -hf ggml-org/gpt2-GGUF:Q4_K_M -c 1024", "inference.weights", "q4_k_m"),
        ("--model gpt2\n--max-num-seqs 8\n--gpu-memory-utilization 0.8\n", "inference.gpu_memory_utilization", 0.8),
    ],
)  # fmt: skip
def test_commands_are_read_as_a_shell_would(written, text: str, path: str, value: object) -> None:
    assert written("serve.sh", text, model__name="gpt2-small").plan.value(path) == value


def test_a_quote_that_is_not_closed_is_one_line(written) -> None:
    with pytest.raises(Exception, match=r"serve.sh:2: a quote is not closed"):
        written("serve.sh", "vllm serve gpt2 \\\n --dtype 'half\n")


def test_a_program_of_no_known_tool_is_refused(written) -> None:
    with pytest.raises(PlanError, match="no command of a known tool"):
        written("train.sh", "#!/bin/sh\nls --all\n")


def test_what_no_file_says_of_requests_is_told(written) -> None:
    found = written("serve.sh", "vllm serve gpt2 --max-model-len 1024", hardware__devices=1)
    assert "requests of 820 + 204 tokens, the longest that it takes: no file gives their length" in found.guesses
    assert "one request at a time: no file gives a number" in found.guesses
    told = written("serve.sh", "vllm serve gpt2 --max-num-seqs 4", inference__prompt_tokens=100, hardware__devices=1)
    assert told.guesses == ()


def test_devices_that_stay_idle_are_told(written) -> None:
    found = written("serve.sh", "vllm serve gpt2 -tp 2", hardware__devices=8)
    assert [clash.rule for clash in found.clashes] == ["idle_devices"]
    assert found.plan.hardware.devices == 2


def test_adapters_on_some_matrices_are_counted_as_the_nearest(written) -> None:
    found = written("a.yml", "base_model: gpt2\nadapter: lora\nlora_target_modules: [q_proj, k_proj, o_proj]\n")
    assert found.plan.training.adapter is not None
    assert found.plan.training.adapter.targets == "attention"
    assert "counted as attention" in found.readings[0].unmodelled[0].why


def test_tables_name_nothing_that_plans_do_not_have(read) -> None:
    """Every value that a table gives a field is one that the field takes."""
    plan = read("training_args.yaml").plan
    for each in tools().values():
        for option in each.options.values():
            for value in option.values.values():
                for one in value if isinstance(value, list) else [value]:
                    given = one if isinstance(one, dict) else {option.path: one}
                    for path, word in given.items():
                        section, _, name = path.partition(".")
                        if section in {"training", "inference"} and word is not None and "." not in name:
                            changed = getattr(plan, section).model_copy(update={name: word})
                            refuse_unknown_names(plan.model_copy(update={section: changed}), load_catalog())


AI_TOOLKIT = """\
job: extension
config:
  name: styles
  process:
    - type: sd_trainer
      training_folder: output
      network: {type: lora, linear: 32, linear_alpha: 32}
      datasets:
        - folder_path: pictures
          resolution: [512, 1024]
      train: {batch_size: 2, steps: 1500, gradient_checkpointing: true, optimizer: adamw8bit, lr: 1e-4, dtype: bf16}
      model: {name_or_path: stabilityai/stable-diffusion-xl-base-1.0, quantize: true}
meta: {version: "1.0"}
"""


def test_the_first_process_of_ai_toolkit_counts(written) -> None:
    imported = written("styles.yaml", AI_TOOLKIT, model__name=None)
    training = imported.plan.training
    assert (imported.plan.model.name, training.micro_batch, training.steps) == ("stable-diffusion-xl", 2, 1500)
    assert (training.method, training.adapter.rank, training.optimizer) == ("lora", 32, "adamw8bit")
    assert {remark.place.line for remark in imported.readings[0].unmodelled} == {10, 12}


def test_arguments_of_earlier_megatrons_and_of_evaluations_are_read(alone):
    earlier = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --batch-size 4 --gas 16 --fp16"
    plan = alone("job.sh", f"python pretrain_gpt2.py {earlier} --model-parallel-size 4 --pipe-parallel-size 2\n").plan
    assert [plan.value(f"parallelism.{name}") for name in ("tp", "pp")] == [4, 2]
    assert [plan.value(f"training.{name}") for name in ("micro_batch", "global_batch", "precision")] == [4, 64, "fp16"]
    of_a_checkpoint = "--num-layers -1 --hidden-size -1 --num-attention-heads -1 --seq-length -1 --micro-batch-size 1"
    assert alone("eval.sh", f"python evaluate.py {of_a_checkpoint} --bf16\n").plan.task == "infer"
    judged = alone("perplexity.sh", f"python pretrain_gpt.py {MEGATRON} --no-train 1\n").plan
    assert (judged.task, judged.value("inference.output_tokens")) == ("infer", 1)


@pytest.mark.parametrize(("program", "task"), [("t0/evaluation/run_eval.py", "infer"), ("evaluate/train.py", None)])
def test_the_name_of_a_program_says_whether_it_evaluates_and_its_folder_does_not(alone, program: str, task: str | None):
    options = "--model_name_or_path Qwen/Qwen3-4B --dataset_name x --per_device_eval_batch_size 8 --max_length 512"
    more = "" if task else " --per_device_train_batch_size 4 --output_dir x"
    assert alone("run.sh", f"python {program} {options}{more}\n").plan.task == task


def test_what_a_command_leaves_to_its_reader_is_no_value(alone):
    assert (
        alone("serve.sh", "vllm serve Qwen/Qwen3-4B --tensor-parallel-size 2 ...\n").plan.value("parallelism.tp") == 2
    )


def test_sizes_that_an_example_overrides_are_named(alone):
    text = "python run_clm.py --model_type gpt2 --config_overrides n_embd=8192 --do_train --output_dir x\n"
    imported = alone("run.sh", text)
    assert [remark.place.field for reading in imported.readings for remark in reading.unmodelled] == [
        "--config_overrides"
    ]
