"""What must hold of memory for every plan: sharding, recomputing and adapters never cost, and parts add up.

Where a buffer stands in the way of an order, the test names it and allows that buffer alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import MemoryEstimate, memory_estimate, resolve_plan
from capacity_tui.engine.estimate.serving import serving_run, serving_work
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.estimate.transformer.memory_phases import training_memory
from capacity_tui.engine.estimate.transformer.training import training_work
from capacity_tui.engine.plan import Plan

CATALOG = load_catalog()
NAMED = ("gpt2", "llama-3.2-1b", "llama-3-8b", "llama-3-70b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite")
ROUNDING = 1.0 + 1e-9
Data = dict[str, dict[str, Any]]


@st.composite
def models(draw: st.DrawFn) -> dict[str, Any]:
    """A model of the catalogue, or one of drawn sizes whose layers divide by eight stages."""
    if draw(st.booleans()):
        return {"name": draw(st.sampled_from(NAMED))}
    heads = draw(st.sampled_from((8, 16, 64)))
    spec: dict[str, Any] = {
        "layers": 8 * draw(st.integers(1, 8)),
        "hidden": heads * draw(st.sampled_from((64, 128))),
        "heads": heads,
        "ffn": 8 * draw(st.integers(16, 8192)),
        "vocab": 8 * draw(st.integers(16, 32000)),
        "gated": draw(st.booleans()),
        "tied_embeddings": draw(st.booleans()),
    }
    if draw(st.booleans()):
        spec |= {"experts": 8, "experts_active": 2, "moe_ffn": 8 * draw(st.integers(16, 1024))}
    return {"name": "transformer_decoder", "spec": spec}


@st.composite
def trainings(draw: st.DrawFn, *, adapters: bool = True) -> Data:
    """A plan that trains a model, over the whole domain of the fields that memory depends on."""
    tp, pp, dp = (draw(st.sampled_from((1, 2, 4))) for _ in range(3))
    micro_batch = draw(st.sampled_from((1, 2, 8)))
    modules = st.lists(st.sampled_from(("attention", "mlp", "norm", "activation")), min_size=1, unique=True)
    training: dict[str, Any] = {
        "seq_len": draw(st.sampled_from((64, 512, 4096, 32768))),
        "micro_batch": micro_batch,
        "global_batch": micro_batch * dp * draw(st.sampled_from((1, 4, 16))),
        "framework": draw(st.sampled_from((None, *sorted(set(CATALOG.frameworks) - {"plain"})))),
        "precision": draw(st.sampled_from(("bf16", "fp16", "fp32", "fp8"))),
        "optimizer": draw(st.sampled_from(sorted(CATALOG.optimizers))),
        "master_weights": draw(st.sampled_from(("fp32", "none"))),
        "gradients": draw(st.sampled_from((None, "fp32", "bf16"))),
        "attention": draw(st.sampled_from(("flash", "eager"))),
        "checkpointing": draw(st.sampled_from(("none", "selective", "selective-ops", "every-2", "full")))
        if draw(st.booleans())
        else "+".join(draw(modules)),
        "compile": draw(st.booleans()),
    }
    if adapters and draw(st.booleans()):
        targets = draw(st.sampled_from(("all", "attention", "mlp", "query+value")))
        training["adapter"] = {"kind": draw(st.sampled_from(("lora", "qlora", "dora"))), "rank": 8, "targets": targets}
    return {
        "model": draw(models()),
        "hardware": {"name": "h100-sxm-80gb", "devices": tp * pp * dp, "per_node": 8},
        "training": training,
        "parallelism": {
            "tp": tp,
            "pp": pp,
            "zero": draw(st.sampled_from((0, 1, 2, 3))),
            "offload": draw(st.sampled_from(("none", "optimizer", "parameters", "activations"))),
            "sequence_parallel": draw(st.sampled_from((None, True, False))),
        },
    }


def changed(data: Mapping[str, Mapping[str, Any]], **changes: object) -> Data:
    """Return the data with other values at dotted paths (``training__seq_len=4096``)."""
    found = {name: dict(section) for name, section in data.items()}
    for path, value in changes.items():
        section, name = path.split("__")
        found[section][name] = value
    return found


def run_of(data: Data) -> TransformerRun:
    """Return the run of a plan; a layout that cannot be is no example."""
    try:
        resolved = resolve_plan(Plan.model_validate({"task": "train", **data}), CATALOG)
    except (CapacityError, ValueError):
        assume(False)
    assert resolved.shape is not None
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, CATALOG)


def memory_of(data: Data) -> MemoryEstimate:
    run = run_of(data)
    return memory_estimate(training_work(run, None), run.cluster)


def allocated(memory: MemoryEstimate, *without: str) -> float:
    """Return the bytes inside the allocator, some parts left out."""
    return float(memory.per_device_bytes.value) - sum(float(memory.parts[name]) for name in without)


@given(trainings())
@settings(deadline=None)
def test_every_number_is_one_and_parts_add_up(data: Data) -> None:
    memory = memory_of(data)
    parts = {name: float(value) for name, value in memory.parts.items()}
    assert all(np.isfinite(value) and value >= 0.0 for value in parts.values()), parts
    assert sum(parts.values()) == pytest.approx(float(memory.reserved_bytes.value))
    inside = [value for name, value in parts.items() if name not in ("context", "reserve")]
    assert sum(inside) == pytest.approx(float(memory.per_device_bytes.value))
    assert float(memory.host_bytes) >= 0.0
    for figure in (memory.per_device_bytes, memory.reserved_bytes):
        assert 0.0 <= float(figure.low) <= float(figure.value) <= float(figure.high)


@given(trainings(), st.integers(0, 2))
@settings(deadline=None)
def test_a_higher_sharding_stage_never_needs_more_beyond_its_buffers(data: Data, stage: int) -> None:
    lower = memory_of(changed(data, parallelism__zero=stage))
    higher = memory_of(changed(data, parallelism__zero=stage + 1))
    # Parameters are gathered and gradients pass whole before they are sharded; sharded gradients have a room of their
    # own from the second stage on.
    beside = ("buffers", "gradients") if stage == 1 else ("buffers",)
    if "adapter" in data["training"] and stage == 2:
        # Sharded units without trained weights keep their inputs longer.
        beside = ("buffers", "activations")
    assert allocated(higher, *beside) <= allocated(lower) * ROUNDING


@given(trainings())
@settings(deadline=None)
def test_recomputing_more_never_needs_more(data: Data) -> None:
    none, own, full = (
        memory_of(changed(data, training__checkpointing=name))
        for name in ("none", data["training"]["checkpointing"], "full")
    )
    assert allocated(own) <= allocated(none) * ROUNDING
    assert allocated(full) <= allocated(own) * ROUNDING


@given(trainings())
@settings(deadline=None)
def test_offloading_never_needs_more_beyond_its_buffers(data: Data) -> None:
    here = memory_of(changed(data, parallelism__offload="none"))
    for place in ("optimizer", "parameters", "activations"):
        there = memory_of(changed(data, parallelism__offload=place))
        assert allocated(there, "buffers") <= allocated(here) * ROUNDING


@given(trainings(adapters=False), st.sampled_from(("lora", "qlora")), st.sampled_from(("all", "mlp", "query+value")))
@settings(deadline=None)
def test_adapters_never_need_more_than_training_everything(data: Data, kind: str, targets: str) -> None:
    full = run_of(data)
    adapted = run_of(changed(data, training__adapter={"kind": kind, "rank": 8, "targets": targets}))
    assume(float(adapted.adapter.trainable) < 0.25 * float(full.counts.total))
    # Dropout keeps copies of the adapters' inputs, and some software of what quantized matrices put out.
    row = CATALOG.frameworks[data["training"]["framework"] or "plain"]
    assume(row.adapter_copies == 0 and row.quantized_copies == 0)
    # Frozen units that are sharded keep their inputs in some.
    assume(row.frozen_units == 0 or float(full.layout.zero) < 3)
    # Matrices that are trained may keep their inputs in 8 bits; adapters keep theirs in 16, whatever the base is.
    assume(float(full.narrowed) == 0.0)
    # The adapters' own weights lie beside the base.
    beside = float(adapted.numerics.weight_bytes * (adapted.adapter.trainable + adapted.adapter.trainable_experts))
    assert float(training_memory(adapted).peak) <= float(training_memory(full).peak) * ROUNDING + beside


@given(trainings(), st.sampled_from(("dp", "tp", "pp")))
@settings(deadline=None)
def test_twice_the_devices_never_need_more_each_beyond_their_buffers(data: Data, axis: str) -> None:
    hardware, parallel, training = data["hardware"], data["parallelism"], data["training"]
    changes: dict[str, object] = {"hardware__devices": 2 * hardware["devices"]}
    if axis == "dp":
        changes["training__global_batch"] = 2 * training["global_batch"]
    else:
        changes[f"parallelism__{axis}"] = 2 * parallel[axis]
    data = changed(data, training__attention="flash")
    before, after = run_of(data), run_of(changed(data, **changes))
    assume(float(after.stages.fullest) * float(after.layout.pp) == float(after.shape.layers))
    less, more = (memory_estimate(training_work(run, None), run.cluster) for run in (before, after))
    beside = ["buffers"]
    room = 0.0
    if axis == "dp" and float(before.layout.shard) == 1.0:
        beside.append("gradients")  # reduced gradients have a room of their own
    if axis == "tp":  # input and gradient of a product are gathered from the tensor-parallel group
        room = 2.0 * float(after.numerics.element_bytes * after.tokens * after.shape.hidden)
    if axis == "pp":  # software that keeps a stage's outputs beside its inputs
        room = float(
            after.software.stage_outputs
            * after.numerics.element_bytes
            * after.tokens
            * after.shape.hidden
            * after.layout.pp
        )
    assert allocated(more, *beside) <= allocated(less) * ROUNDING + room


@given(trainings())
@settings(deadline=None)
def test_eager_attention_holds_the_scores_of_the_layer_at_work(data: Data) -> None:
    run = run_of(changed(data, training__attention="eager"))
    scores = 2.0 * run.tokens * run.shape.heads * run.data.seq_len / run.layout.tp
    assert float(memory_of(changed(data, training__attention="eager")).parts["activations"]) >= 0.0
    assert float(training_memory(run).peak) >= float(scores)


@st.composite
def servings(draw: st.DrawFn) -> Data:
    """A plan that serves a model."""
    tp, pp = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2, 4)))
    return {
        "model": draw(models()),
        "hardware": {"name": "h100-sxm-80gb", "devices": tp * pp, "per_node": 8},
        "inference": {
            "engine": draw(st.sampled_from(("transformers", "vllm", "sglang", "tensorrt-llm"))),
            "prompt_tokens": draw(st.sampled_from((16, 1000, 32768))),
            "output_tokens": draw(st.sampled_from((1, 512))),
            "batch": draw(st.sampled_from((1, 8, 256))),
            "weights": draw(st.sampled_from(("bf16", "fp8"))),
        },
        "parallelism": {"tp": tp, "pp": pp},
    }


def served(data: Data) -> MemoryEstimate:
    try:
        resolved = resolve_plan(Plan.model_validate({"task": "infer", **data}), CATALOG)
        assert resolved.shape is not None
        run = serving_run(resolved.plan, resolved.shape, resolved.cluster, CATALOG)
        return memory_estimate(serving_work(run), run.cluster)
    except (CapacityError, ValueError):
        assume(False)
        raise


@given(servings(), st.sampled_from(("tp", "pp")))
@settings(deadline=None)
def test_serving_over_twice_the_devices_never_needs_more_each(data: Data, axis: str) -> None:
    parallel, devices = data["parallelism"], data["hardware"]["devices"]
    twice = {f"parallelism__{axis}": 2 * parallel[axis], "hardware__devices": 2 * devices}
    before, after = served(data), served(changed(data, **twice))
    # A cache that could not hold the batch takes what room is left in the engine's share, on more devices too.
    assume(float(after.parts["kv_cache"]) <= float(before.parts["kv_cache"]) * ROUNDING)
    assert float(after.per_device_bytes.value) <= float(before.per_device_bytes.value) * ROUNDING
    # One more group of ranks has its communication buffers outside the allocator.
    assert (
        allocated(after) + float(after.parts["reserve"])
        <= (allocated(before) + float(before.parts["reserve"])) * ROUNDING
    )
