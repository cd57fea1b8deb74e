"""Files of inference engines and of tools that train: each says the plan that it would run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import refuse_unknown_names
from capacity_tui.engine.plan.imports.tools import tools
from capacity_tui.engine.solve.modes import fill

SAID: Mapping[str, Mapping[str, Any]] = {
    "vllm_serve.sh": {
        "task": "infer",
        "model.name": "llama-3.1-70b",
        "inference.engine": "vllm",
        "inference.weights": "fp8",
        "parallelism.tp": 4,
        "inference.concurrency": 64,
        "inference.gpu_memory_utilization": 0.92,
        "inference.prompt_tokens": 31488,
        "inference.output_tokens": 512,
        "inference.num_speculative_tokens": 3,
        "hardware.devices": 4,
    },
    "sglang.sh": {
        "model.name": "deepseek-v3",
        "inference.engine": "sglang",
        "parallelism.tp": 8,
        "inference.concurrency": 32,
        "inference.prompt_tokens": 7680,
        "hardware.devices": 8,
    },
    "llama_server.txt": {
        "model.name": "llama-3.1-8b",
        "inference.engine": "llamacpp",
        "inference.weights": "q4_k_m",
        "inference.kv_cache": "q8_0",
        "inference.concurrency": 4,
        "inference.prompt_tokens": 3584,
        "inference.gpu_layers": None,
    },
    "axolotl_qlora.yml": {
        "task": "finetune",
        "model.name": "llama-3-8b",
        "training.method": "qlora",
        "training.adapter.rank": 32,
        "training.adapter.targets": "all",
        "training.quantization": "nf4",
        "training.optimizer": "adamw8bit",
        "training.attention": "flash2",
        "training.checkpointing": "full",
        "training.seq_len": 4096,
        "training.framework": "axolotl",
    },
    "levanter.yaml": {
        "model.name": "llama-3.1-8b",
        "training.seq_len": 4096,
        "training.precision": "bf16",
        "training.global_batch": 1024,
        "training.steps": 10000,
        "training.checkpointing": "full",
        "parallelism.zero": 3,
        "training.framework": "maxtext",
    },
    "diffusers_lora.sh": {
        "task": "finetune",
        "model.name": "stable-diffusion-xl",
        "model.spec.image_size": 1024,
        "training.method": "lora",
        "training.adapter.rank": 4,
        "training.precision": "fp16",
        "training.micro_batch": 1,
        "training.steps": 500,
    },
    "tabbyapi.yml": {
        "task": "infer",
        "inference.engine": "exllamav2",
        "inference.weights": "exl2-4.65",
        "inference.prompt_tokens": 32256,
        "inference.concurrency": 4,
    },
    "nim.yaml": {
        "task": "infer",
        "model.name": "llama-3.3-70b",
        "inference.engine": "vllm",
        "parallelism.tp": 4,
        "inference.prompt_tokens": 7680,
        "hardware.devices": 4,
    },
    "llamafactory_lora.yaml": {
        "task": "finetune",
        "model.name": "qwen2.5-7b",
        "training.method": "lora",
        "training.adapter.rank": 8,
        "training.checkpointing": "full",
        "training.seq_len": 2048,
        "training.framework": "llamafactory",
    },
    "trl_sft.yaml": {
        "task": "finetune",
        "model.name": "qwen2.5-0.5b",
        "training.method": "qlora",
        "training.adapter.rank": 32,
        "training.adapter.targets": "attention",
        "training.seq_len": 4096,
        "training.precision": "bf16",
        "training.checkpointing": "full",
        "training.framework": "trl",
    },
    "verl_grpo.sh": {
        "task": "finetune",
        "model.name": "qwen3-8b",
        "training.preference": "grpo",
        "training.framework": "megatron",
        "training.seq_len": 4096,
        "training.micro_batch": 2,
        "training.global_batch": 512,
        "training.checkpointing": "full",
        "training.epochs": 3,
        "parallelism.tp": 2,
        "parallelism.pp": 2,
        "parallelism.zero": 1,
        "hardware.devices": 16,
        "hardware.per_node": 8,
    },
    "openrlhf_dpo.sh": {
        "model.name": "llama-3-8b",
        "training.method": "lora",
        "training.adapter.rank": 64,
        "training.preference": "dpo",
        "training.seq_len": 8192,
        "training.micro_batch": 1,
        "training.global_batch": 256,
        "training.precision": "bf16",
        "training.checkpointing": "full",
        "training.framework": "deepspeed",
        "parallelism.zero": 3,
    },
    "torchtitan_config.py": {
        "model.name": "llama-3.1-8b",
        "training.framework": "torchtitan",
        "training.seq_len": 16384,
        "training.micro_batch": 1,
        "training.global_batch": 32,
        "training.steps": 1000,
        "training.checkpointing": "full",
        "training.compile": True,
        "parallelism.tp": 2,
        "hardware.devices": 16,
    },
    "megatron_bridge.py": {
        "model.name": "llama-3-8b",
        "training.framework": "megatron",
        "training.seq_len": 16384,
        "training.micro_batch": 1,
        "training.global_batch": 512,
        "training.steps": 20000,
        "training.precision": "bf16",
        "training.checkpointing": "none",
        "parallelism.tp": 2,
        "parallelism.pp": 1,
        "parallelism.cp": 2,
        "parallelism.zero": 1,
        "parallelism.sequence_parallel": True,
    },
    "torchtitan.toml": {
        "model.name": "llama-3.1-8b",
        "training.framework": "torchtitan",
        "training.micro_batch": 1,
        "parallelism.tp": 2,
        "parallelism.zero": 3,
        "training.checkpointing": "selective-ops",
        "training.compile": True,
    },
    "megatron.sh": {
        "model.name": "transformer_decoder",
        "model.spec.layers": 80,
        "model.spec.kv_heads": 8,
        "model.spec.gated": True,
        "model.spec.tied_embeddings": False,
        "hardware.devices": 32,
        "hardware.per_node": 8,
        "parallelism.tp": 8,
        "parallelism.pp": 2,
        "parallelism.interleave": 4,
        "parallelism.zero": 1,
        "training.global_batch": 512,
        "training.checkpointing": "selective",
        "training.precision": "bf16",
    },
    "run_clm.sh": {
        "model.name": "gpt2-small",
        "hardware.devices": 4,
        "training.global_batch": 32,
        "training.precision": "bf16",
        "training.checkpointing": "full",
    },
    "litgpt_qlora.yaml": {
        "task": "finetune",
        "model.name": "llama-2-7b",
        "training.method": "qlora",
        "training.adapter.rank": 32,
        "hardware.devices": 1,
        "training.micro_batch": 2,
        "training.global_batch": 8,
        "training.seq_len": 512,
        "training.epochs": 4,
        "training.framework": "litgpt",
    },
    "gpt_neox.yml": {
        "model.spec.layers": 32,
        "model.spec.hidden": 2560,
        "parallelism.tp": 2,
        "parallelism.zero": 1,
        "training.precision": "fp16",
        "training.micro_batch": 4,
        "training.global_batch": 32,
        "training.checkpointing": "full",
        "training.framework": "deepspeed",
    },
    "llm_foundry.yaml": {
        "model.name": "llama-2-7b",
        "parallelism.zero": 3,
        "training.optimizer": "lion",
        "training.global_batch": 64,
        "training.epochs": 1,
        "training.seq_len": 4096,
        "training.checkpointing": "full",
        "training.precision": "bf16",
    },
    "nanotron.yaml": {
        "model.spec.layers": 16,
        "model.spec.kv_heads": 8,
        "parallelism.tp": 2,
        "parallelism.zero": 1,
        "hardware.devices": 8,
        "training.micro_batch": 2,
        "training.global_batch": 64,
        "training.steps": 1500,
        "parallelism.sequence_parallel": True,
    },
    "nemo.yaml": {
        "model.spec.layers": 24,
        "hardware.devices": 32,
        "hardware.per_node": 8,
        "parallelism.tp": 2,
        "parallelism.zero": 1,
        "training.micro_batch": 4,
        "training.global_batch": 2048,
        "training.checkpointing": "selective",
        "training.framework": "nemo",
    },
    "tgi.sh": {
        "task": "infer",
        "model.name": "llama-3.1-8b",
        "inference.engine": "tgi",
        "inference.weights": "awq-4",
        "parallelism.tp": 2,
        "inference.prompt_tokens": 4000,
        "inference.output_tokens": 500,
        "hardware.devices": 2,
    },
    "ollama.sh": {
        "task": "infer",
        "model.name": "llama-3.1-8b",
        "inference.engine": "llamacpp",
        "inference.weights": "q8_0",
    },
    "unsloth.py": {
        "task": "finetune",
        "model.name": "llama-3.1-8b",
        "training.method": "qlora",
        "training.adapter.rank": 16,
        "training.optimizer": "adamw8bit",
        "training.micro_batch": 2,
        "training.steps": 60,
        "training.seq_len": 2048,
    },
    "llamafactory_v1.yaml": {
        "task": "finetune",
        "model.name": "qwen3-4b",
        "training.method": "qlora",
        "training.adapter.rank": 16,
        "training.seq_len": 2048,
        "training.micro_batch": 2,
        "parallelism.zero": 3,
        "training.framework": "llamafactory",
    },
    "estimate_train_time.yml": {
        "hardware.name": "a100-sxm-80gb",
        "hardware.devices": 16,
        "hardware.per_node": 4,
        "parallelism.pp": 4,
        "parallelism.tp": 2,
        "training.micro_batch": 4,
        "training.global_batch": 64,
        "model.spec.hidden": 4096,
        "model.spec.layers": 32,
        "model.spec.vocab": 50257,
    },
}


@pytest.mark.parametrize("name", SAID)
def test_a_file_says_the_plan_that_it_runs(read, name: str) -> None:
    hardware = None if "hardware.name" in SAID[name] else "h100-sxm-80gb"
    devices = None if "hardware.devices" in SAID[name] else 4
    found = read(name, model__name=None, hardware__name=hardware, hardware__devices=devices)
    assert {path: found.plan.value(path) for path in SAID[name]} == SAID[name]
    assert found.clashes == ()
    assert not [remark for reading in found.readings for remark in (*reading.unknown, *reading.unmodelled)]
    fill(found.plan, "balanced", None, load_catalog())


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
    found = written("a.yml", "base_model: gpt2\nadapter: lora\nlora_target_modules: [q_proj, k_proj, v_proj]\n")
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
