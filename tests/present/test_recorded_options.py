"""Every option that an export writes is one that a release of its tool declares, with a value that it takes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from python_files import parts_of

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present.frameworks import adapter_tools, framework_files

RECORD = yaml.safe_load((Path(__file__).parent / "tool_options.yaml").read_text("utf-8"))
BLOCKS = {
    "vllm_serve.sh": "vllm",
    "sglang_serve.sh": "sglang",
    "llama_server.sh": "llamacpp",
    "tgi_launcher.sh": "tgi",
    "Modelfile": "ollama",
    "ollama.sh": "ollama",
    "megatron.sh": "megatron",
    "axolotl.yaml": "axolotl",
    "llamafactory.yaml": "llamafactory",
    "ds_config.json": "deepspeed",
    "torchtitan_config.py": "torchtitan",
    "torchtune.yaml": "torchtune",
    "training_arguments.yaml": "training_arguments",
    "accelerate.yaml": "accelerate",
    "sft_config.yaml": "sft_config",
}
FRAMEWORKS = ("transformers", "fsdp", "deepspeed", "megatron", "torchtitan")
TRAININGS: list[dict[str, Any]] = [
    {},
    {"parallelism": {"tp": 2, "zero": 3}},
    {"parallelism": {"zero": 2, "offload": "optimizer"}, "training": {"checkpointing": "full", "learning_rate": 1e-4}},
    {"parallelism": {"zero": 3, "offload": "parameters"}, "training": {"precision": "fp16", "optimizer": "adamw8bit"}},
    {"parallelism": {"pp": 2, "interleave": 2}, "training": {"precision": "fp8", "master_weights": "none"}},
    {"parallelism": {"cp": 2, "tp": 2}, "training": {"loss": "fused", "compile": True, "checkpointing": "selective"}},
    {"model": {"name": "mixtral-8x7b"}, "parallelism": {"ep": 8, "zero": 1}, "training": {"activation_offload": "all"}},
    {"training": {"preference": "dpo", "document_tokens": 512}, "data": {"workers": 4, "prefetch": 2}},
]
ENGINES = ("vllm", "sglang", "llamacpp", "tgi", "ollama")
SERVED: list[dict[str, Any]] = [
    {},
    {"weights": "fp8", "kv_cache": "fp8", "num_speculative_tokens": 3, "max_num_batched_tokens": 4096},
    {"adapters": 4, "adapter_rank": 64, "prefix_cache_hit_rate": 0.5, "chunked_prefill": True, "concurrency": 64},
    {"weights": "nf4", "gpu_memory_utilization": 0.8},
    {"weights": "q4_k_m", "kv_cache": "q8_0", "gpu_layers": 16, "host_expert_layers": 8},
]


@cache
def exported() -> tuple[tuple[str, str], ...]:
    """Return the files of many plans, by name."""
    hardware = {"name": "h100-sxm-80gb", "devices": 16, "per_node": 8}
    base = {"model": {"name": "llama-3.1-8b"}, "hardware": hardware}
    plans = [
        {**base, "task": "infer", "inference": {"engine": engine, "batch": 8, **inference}, "parallelism": {"tp": 8}}
        for engine in ENGINES
        for inference in SERVED
    ]
    for sections in TRAININGS:
        training = {"micro_batch": 2, "global_batch": 64, "steps": 100, **sections.get("training", {})}
        hows: list[dict[str, str]] = [{"framework": framework} for framework in FRAMEWORKS]
        hows += [{"method": "lora"}, {"method": "qlora"}]
        plans += ({**base, **sections, "training": {**training, **how}} for how in hows)
    files = []
    for data in plans:
        plan = resolve_plan(plan_from_data(data), load_catalog())
        for tool in adapter_tools(plan, load_catalog()) or (None,):
            files += framework_files(plan, load_catalog(), (), tool).items()
    return tuple(files)


def options(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the options of a file with their values; what stands in sections has their names before it."""
    if name in {"Modelfile", "ollama.sh"}:
        yield from re.findall(r"^(?:PARAMETER |export )(\w+)[ =](\S+)", text, re.MULTILINE)
        return
    if name.endswith(".sh"):
        words = shlex.split(text.replace("\\\n", " "), comments=True)
        words = words[words.index("pretrain_gpt.py") if "pretrain_gpt.py" in words else 0 :]
        for word, after in zip(words, [*words[1:], "--"], strict=True):
            if word.startswith("--"):
                yield word, True if after.startswith("--") else after
        return
    data = json.loads(text) if name.endswith(".json") else parts_of(text) if name.endswith(".py") else None
    yield from inner(yaml.safe_load(text) if data is None else data, RECORD[BLOCKS[name]]["options"])


def inner(data: Mapping[str, Any], known: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict) and f"{above}{key}" not in known:
            yield from inner(value, known, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def is_taken(value: Any, kind: str | list[str]) -> bool:
    """Whether a value is of the type of an option, or one of its words."""
    if kind == "any" or value is None or str(value).startswith("${"):  # what the shell is to fill in
        return True
    if isinstance(kind, list):
        return str(value) in kind or str(value).casefold() in kind  # Accelerate takes words in any case
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return not isinstance(value, list | dict)
    try:
        return not isinstance(value, bool) and {"int": int, "float": float}[kind](str(value)) is not None
    except ValueError:
        return False


@pytest.mark.parametrize("name", BLOCKS)
def test_what_is_written_is_declared_by_the_tool(name: str) -> None:
    texts = [text for written, text in exported() if written == name]
    assert texts, "no plan here is written for it"
    known = RECORD[BLOCKS[name]]["options"]
    written = [pair for text in texts for pair in options(name, text)]
    release = RECORD[BLOCKS[name]]["release"]
    assert {option for option, _ in written} <= known.keys(), release
    assert [(option, value) for option, value in written if not is_taken(value, known[option])] == [], release


def test_what_is_written_for_a_shell_is_a_script_of_one() -> None:
    scripts = {(name, text) for name, text in exported() if name.endswith(".sh")}
    assert len({name for name, _ in scripts}) >= 6
    for name, text in sorted(scripts):
        process = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
        assert (name, process.stderr) == (name, "")
