"""Plans for tests: a complete base each, and changes by dotted path."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.plan import Plan

TRAINING: Mapping[str, object] = {
    "task": "train",
    "model.name": "llama-3-8b",
    "hardware.name": "h100-sxm-80gb",
    "hardware.devices": 64,
    "hardware.per_node": 8,
    "hardware.interconnect": "ib-ndr",
    "training.seq_len": 8192,
    "training.micro_batch": 1,
    "training.global_batch": 128,
    "training.framework": "megatron",
    "training.checkpointing": "none",
    "parallelism.zero": 1,
}
SERVING: Mapping[str, object] = {
    "task": "infer",
    "model.name": "llama-2-7b",
    "hardware.name": "h100-sxm-80gb",
    "hardware.devices": 1,
    "inference.prompt_tokens": 1024,
    "inference.output_tokens": 256,
    "inference.batch": 8,
    "inference.weights": "bf16",
    "inference.kv_cache": "fp16",
    "inference.engine": "vllm",
}


def plan_of(base: Mapping[str, object], changes: Mapping[str, object] | None = None) -> Plan:
    """Return a base plan with other values at dotted paths."""
    data: dict[str, object] = {}
    for path, value in {**base, **(changes or {})}.items():
        *parents, last = path.split(".")
        section = data
        for parent in parents:
            section = section.setdefault(parent, {})  # type: ignore[assignment]
        section[last] = value
    return Plan.model_validate(data)
