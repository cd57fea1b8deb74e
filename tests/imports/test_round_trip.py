"""A plan that is written for a tool and read back is the same plan, but for what its files say they leave out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import ResolvedPlan, resolve_plan
from capacity_tui.engine.plan.files import example_names, example_text, plan_from_data, plan_from_text
from capacity_tui.engine.plan.imports import Imported, import_plan
from capacity_tui.engine.present.frameworks import adapter_tools, framework_files

WRITTEN_ANYWAY = {"training.learning_rate", "training.loss"}
"""What some tools ask for and plans leave open: their files have usual values, and say so."""
RUNS = ("task", "model", "training", "inference", "parallelism", "hardware")


def resolved(data: Mapping[str, object]) -> ResolvedPlan:
    return resolve_plan(plan_from_data(dict(data)), load_catalog())


def trained(framework: str | None, **sections: Any) -> ResolvedPlan:
    training = {"micro_batch": 2, "global_batch": 64, "tokens": 1e9, "framework": framework}
    hardware = {"name": "h100-sxm-80gb", "devices": 16, "per_node": 8}
    training |= sections.pop("training", {})
    return resolved({"model": {"name": "llama-3.1-8b"}, "training": training, "hardware": hardware, **sections})


def served(engine: str, **inference: object) -> ResolvedPlan:
    given = {"engine": engine, "batch": 8, "prompt_tokens": 1000, "output_tokens": 24, **inference}
    hardware = {"name": "h100-sxm-80gb", "devices": 4}
    return resolved(
        {"task": "infer", "model": {"name": "llama-3.1-70b"}, "hardware": hardware, "inference": given,
         "parallelism": {"tp": 4}}
    )  # fmt: skip


def fields(value: object, above: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from fields(inner, f"{above}.{name}" if above else name)
    else:
        yield above, value


def options_of(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()


def taken_through(plan: ResolvedPlan, folder: Path, tool: str | None = None) -> tuple[Imported, set[str]]:
    """Write a plan, read it back and write it again; return what was read, and the fields that differ."""
    files = framework_files(plan, load_catalog(), (), tool)
    for name, text in files.items():
        (folder / name).write_text(text)
    found = import_plan([str(folder)])
    again = resolve_plan(found.plan, load_catalog())
    written = framework_files(again, load_catalog(), (), tool)
    assert {name: options_of(text) for name, text in written.items()} == {
        name: options_of(text) for name, text in files.items()
    }
    before, after = (dict(fields({name: each.plan.plain_data()[name] for name in RUNS})) for each in (plan, again))
    return found, {path for path in before | after if before.get(path) != after.get(path)}


def examples() -> Iterator[tuple[str, str | None]]:
    for name in example_names():
        plan = resolve_plan(plan_from_text(example_text(name), name), load_catalog())
        if len(framework_files(plan, load_catalog())) > 1:
            yield name, None
        yield from ((name, tool) for tool in adapter_tools(plan, load_catalog()))


@pytest.mark.parametrize(("name", "tool"), list(examples()))
def test_every_example_comes_back_from_every_tool(name: str, tool: str | None, tmp_path: Path) -> None:
    plan = resolve_plan(plan_from_text(example_text(name), name), load_catalog())
    found, changed = taken_through(plan, tmp_path, tool)
    assert changed <= WRITTEN_ANYWAY
    assert found.clashes == ()
    assert not [remark for reading in found.readings for remark in (*reading.unknown, *reading.unmodelled)]


@pytest.mark.parametrize(
    "plan",
    [
        trained("deepspeed", parallelism={"zero": 3, "offload": "parameters"}),
        trained("deepspeed", training={"precision": "fp16", "optimizer": "lion", "steps": 10, "tokens": None}),
        trained("fsdp", parallelism={"zero": 3, "shard": 8}, training={"checkpointing": "full"}),
        trained("fsdp", parallelism={"zero": 3, "tp": 2, "cp": 2}),
        trained("transformers", training={"optimizer": "adamw8bit", "loss": "fused", "compile": True}),
        trained("ddp"),
        trained("torchtitan", training={"checkpointing": "selective-ops", "precision": "fp8"}, parallelism={"zero": 3}),
        trained("torchtitan", training={"loss": "chunked", "compile": True}, parallelism={"zero": 2}),
        trained("torchtitan", parallelism={"tp": 2, "pp": 4, "interleave": 2, "zero": 3}),
        trained("megatron", parallelism={"tp": 2, "pp": 2, "interleave": 2, "zero": 1, "cp": 2}),
        trained("megatron", training={"checkpointing": "attention+mlp", "precision": "fp8"}, parallelism={"zero": 3}),
        served("vllm", weights="fp8", kv_cache="fp8", concurrency=64),
        served("vllm", request_rate=5, num_speculative_tokens=3, max_num_batched_tokens=4096),
        served("sglang", weights="awq-4", gpu_memory_utilization=0.85),
        served("tensorrt-llm", kv_cache="fp8", concurrency=32),
        served("llamacpp", weights="q4_k_m", kv_cache="q8_0", gpu_layers=30),
        served("llamacpp", weights="q4_k_m", kv_cache="q8_0", host_expert_layers=24),
    ],
)
def test_a_plan_that_a_tool_can_run_comes_back_whole(plan: ResolvedPlan, tmp_path: Path) -> None:
    assert taken_through(plan, tmp_path)[1] == set()


def test_an_option_that_was_changed_since_counts(tmp_path: Path) -> None:
    files = framework_files(trained("fsdp", parallelism={"zero": 3}), load_catalog())
    for name, text in files.items():
        changed = text.replace("num_processes: 16", "num_processes: 32").replace("batch_size: 2", "batch_size: 4")
        (tmp_path / name).write_text(changed.replace("reshard_after_forward: true", "reshard_after_forward: false"))
    plan = import_plan([str(tmp_path)]).plan
    assert (plan.hardware.devices, plan.training.micro_batch, plan.parallelism.zero) == (32, 4, 2)
    assert plan.training.global_batch == 4 * 2 * 32
    script = framework_files(served("vllm", weights="fp8"), load_catalog())["vllm_serve.sh"]
    (tmp_path / "serve.sh").write_text(
        script.replace("--max-num-seqs 8", "--max-num-seqs 16").replace("--quantization fp8", "")
    )
    served_plan = import_plan([str(tmp_path / "serve.sh")]).plan
    assert served_plan.inference.concurrency == 16
