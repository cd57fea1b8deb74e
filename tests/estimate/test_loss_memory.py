"""What the loss, tiles of the sequence, gathered inputs and gradient buffers take of memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import MemoryEstimate, estimate_plan
from capacity_tui.engine.plan.files import plan_from_data

GIB = 2**30
CATALOG = load_catalog()


def memory(framework: str | None, model: str = "llama-3-8b", devices: int = 8, **training: Any) -> MemoryEstimate:
    """Memory of a training step at 8k tokens; keys with a double underscore are of the layout."""
    parallel = {key.removeprefix("layout__"): training.pop(key) for key in list(training) if key.startswith("layout__")}
    data = {
        "task": "finetune" if "adapter" in training else "train",
        "model": {"name": model},
        "training": {"seq_len": 8192, "global_batch": devices, "framework": framework} | training,
        "hardware": {"name": "h200-sxm", "devices": devices},
        "parallelism": parallel,
    }
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory


def peak(found: MemoryEstimate) -> float:
    return float(found.per_device_bytes.value)


@given(
    st.sampled_from(sorted(CATALOG.frameworks)),
    st.sampled_from(("gpt2", "llama-3.2-1b", "gemma-2b", "llama-2-7b")),
    st.sampled_from(("bf16", "fp32")),
    st.sampled_from(("none", "full")),
    st.sampled_from((256, 4096, 65536)),
)
@settings(deadline=None, max_examples=30)
def test_a_loss_that_holds_fewer_logits_never_needs_more(
    framework: str, model: str, precision: str, checkpointing: str, length: int
) -> None:
    standard, kernel, chunked, fused = (
        peak(memory(framework, model, 1, loss=loss, precision=precision, checkpointing=checkpointing, seq_len=length))
        for loss in ("standard", "kernel", "chunked", "fused")
    )
    assert fused <= chunked <= standard
    assert fused <= kernel <= standard


@given(st.sampled_from(sorted(CATALOG.frameworks)), st.sampled_from(("none", "norm", "full")), st.sampled_from((1, 8)))
@settings(deadline=None, max_examples=20)
def test_more_tiles_never_need_more(framework: str, checkpointing: str, micro_batch: int) -> None:
    found = [
        peak(memory(framework, sequence_tiles=tiles, checkpointing=checkpointing, micro_batch=micro_batch))
        for tiles in (1, 2, 16)
    ]
    assert found == sorted(found, reverse=True)


def test_a_fused_loss_leaves_no_logits_at_length() -> None:
    """At 128k tokens with whole layers recomputed, logits would be larger than all the rest."""
    long = {"seq_len": 131072, "checkpointing": "full", "layout__zero": 3, "layout__offload": "optimizer"}
    standard, fused = (memory("deepspeed", loss=loss, **long) for loss in ("standard", "fused"))
    # Published for this run with fused kernels: 66.5 GiB reserved.
    assert peak(fused) / GIB == pytest.approx(62, rel=0.1)
    assert float(standard.parts["logits"]) > 0.5 * peak(standard)


def test_plain_autograd_keeps_gathered_inputs_whole() -> None:
    """Inputs of the two products split by columns: 2 x hidden x 2 bytes a token and layer, whatever the split."""
    layout = {"layout__tp": 8, "layout__zero": 1, "layout__sequence_parallel": True}
    kept, again = (memory(name, "llama-3-8b", 8, loss="standard", **layout) for name in ("nanotron", "megatron"))
    layers, hidden, tokens = 32, 4096, 8192
    own, rows = layers * tokens * 2 * hidden * 2, CATALOG.frameworks
    saved = [
        sum((rows[name].saved_activation[0] * 14336, rows[name].saved_norm[0] * hidden))
        for name in ("nanotron", "megatron")
    ]
    difference = layers * tokens * 2 * (saved[0] - saved[1]) / 8
    found = float(kept.parts["activations"]) - float(again.parts["activations"])
    assert found == pytest.approx(own * 7 / 8 + difference, rel=0.01)


def test_a_gradient_buffer_in_another_type_never_shares_room_with_activations() -> None:
    wide, narrow = (memory("ddp", devices=1, gradients=name, master_weights="none") for name in ("fp32", "bf16"))
    assert float(wide.parts["gradients"]) == pytest.approx(4 * 8.03e9, rel=0.01)
    assert float(narrow.parts["gradients"]) < float(wide.parts["gradients"])


def test_offloaded_activations_lie_in_host_memory() -> None:
    here, there = (memory("unsloth", devices=1, micro_batch=4, activation_offload=where) for where in ("none", "all"))
    moved = float(there.host_bytes) - float(here.host_bytes)
    assert moved > 10 * GIB
    assert peak(there) < peak(here)


def test_trained_embeddings_beside_adapters_are_copies_with_gradients_and_states() -> None:
    """Embedding and head in 16 bits: a copy, its gradient, two states and what the optimizer writes aside."""
    without, trained = (
        memory(
            "transformers", "llama-2-7b", 1, seq_len=256, checkpointing="full", master_weights="none", gradients="bf16",
            adapter={"kind": "lora", "rank": 64, "train_embeddings": switch},
        )
        for switch in (False, True)
    )  # fmt: skip
    outside = 2 * 32000 * 4096
    assert peak(trained) - peak(without) == pytest.approx(10 * outside, rel=0.25)


def test_pure_16_bit_training_peaks_at_ten_bytes_a_parameter() -> None:
    """Weights, gradients and two moments of 2 bytes, and what an optimizer of separate operations writes aside."""
    found = memory("ddp", "llama-2-7b", 1, seq_len=64, master_weights="none", gradients="bf16", checkpointing="full")
    assert peak(found) == pytest.approx(10 * 6.74e9, rel=0.02)


def test_sharded_gradients_of_an_only_micro_batch_come_after_its_loss() -> None:
    """What is allocated in the loss holds no gradient; the allocator keeps their blocks all the same."""
    once, twice = (
        memory("fsdp", "llama-2-7b", layout__zero=3, global_batch=batch, loss="standard", micro_batch=2)
        for batch in (16, 32)
    )
    shard = 4 * 6.74e9 / 8
    assert float(once.parts["gradients"]) == 0.0
    assert float(twice.parts["gradients"]) == pytest.approx(shard, rel=0.01)
    assert peak(twice) - peak(once) == pytest.approx(shard, rel=0.01)
    reserves = [float(found.reserved_bytes.value) for found in (once, twice)]
    assert reserves[0] == pytest.approx(reserves[1], rel=0.01)


GIGA_LOGITS = 128256 * 8192 / 1e9


@pytest.mark.parametrize(
    ("framework", "model", "training", "each"),
    [
        ("transformers", "llama-3-8b", {"loss": "kernel"}, 8),
        ("transformers", "llama-3-8b", {"loss": "kernel", "precision": "fp32"}, 8),
        ("transformers", "llama-3.2-1b", {"loss": "kernel", "logits": "bf16"}, 4),
        ("ddp", "llama-3-8b", {"master_weights": "none"}, 8),
        ("transformers", "llama-3-8b", {"logits": "bf16"}, 8),
        ("transformers", "llama-3-8b", {"logits": "fp32"}, CATALOG.frameworks["transformers"].logit_bytes),
    ],
)
def test_bytes_of_a_logit_follow_the_code_that_makes_the_loss(
    framework: str, model: str, training: dict[str, Any], each: float
) -> None:
    """With a small model in whole recomputation the loss is where a step takes most."""
    found = memory(framework, model, 1, micro_batch=8, checkpointing="full", global_batch=8, **training)
    assert float(found.parts["logits"]) / 8e9 == pytest.approx(each * GIGA_LOGITS, rel=0.01)


def test_models_that_leave_their_logits_in_16_bits_have_them_cast_by_mixed_precision_alone() -> None:
    logits = 50257 * 1024 * 8
    mixed = memory("transformers", "gpt2", 1, seq_len=1024, micro_batch=8, checkpointing="full")
    pure = memory("transformers", "gpt2", 1, seq_len=1024, micro_batch=8, checkpointing="full", master_weights="none")
    assert float(mixed.parts["logits"]) == pytest.approx(18 * logits, rel=0.02)
    assert float(pure.parts["logits"]) == pytest.approx(8 * logits, rel=0.02)


def test_logits_and_layers_take_turns_with_blocks_of_their_own() -> None:
    """Half of the smaller of both lies idle; memory that is planned once has nothing idle."""
    share, row = CATALOG.coefficients["idle-logit-blocks"].value, CATALOG.frameworks["fsdp"]
    adapter = {"adapter": {"kind": "lora", "targets": "query+value"}, "master_weights": "none", "checkpointing": "full"}
    standard, fused = (memory("fsdp", devices=1, loss=loss, **adapter) for loss in ("standard", "fused"))
    kept = 32 * 8192 * 4096 * 2 + float(standard.parts["weights"] + standard.parts["optimizer"])
    layer = float(standard.timeline["backward peak"]) - kept
    idle = float(standard.parts["reserve"]) - row.fragmentation * peak(standard)
    assert idle == pytest.approx(share * layer, rel=0.05)
    assert float(fused.parts["reserve"]) == pytest.approx(row.fragmentation * peak(fused), rel=0.15)
    planned = memory("maxtext", devices=1, loss="standard", lengths="varied")
    assert float(planned.parts["reserve"]) == pytest.approx(CATALOG.frameworks["maxtext"].fragmentation * peak(planned))


def test_samples_of_many_lengths_leave_blocks_of_each() -> None:
    equal, varied = (
        memory("transformers", devices=1, lengths=word, checkpointing="full") for word in ("equal", "varied")
    )
    assert peak(equal) == peak(varied)
    dynamic = float(varied.parts["activations"] + varied.parts["logits"])
    more = float(varied.reserved_bytes.value) - float(equal.reserved_bytes.value)
    assert more == pytest.approx(CATALOG.coefficients["varied-length-blocks"].value * dynamic, rel=0.3)


def test_an_activation_in_separate_operations_keeps_what_each_needs() -> None:
    """Steps of the Trainer with GPT-2 on an EPYC, fp32, 4 x 512, took 7,846 and 7,940 MiB."""
    options = {"seq_len": 512, "micro_batch": 4, "global_batch": 4, "precision": "fp32"}
    steps, compiled = (memory("transformers", "gpt2", 1, **options, compile=on) for on in (False, True))
    three_widths = 12 * 3 * 4 * 512 * 3072 * 4
    assert float(steps.parts["activations"]) > float(compiled.parts["activations"]) + 0.99 * three_widths
    plan = {
        "task": "train",
        "model": {"name": "gpt2"},
        "training": options | {"framework": "transformers"},
        "hardware": {"name": "epyc-9755"},
    }
    measured = estimate_plan(plan_from_data(plan), None, CATALOG).estimate.memory
    assert float(measured.reserved_bytes.value) / 2**20 == pytest.approx(7846, rel=0.1)


def test_logits_of_software_that_is_not_named_are_the_less_sure_the_more_they_are() -> None:
    def width(framework: str | None, loss: str) -> float:
        found = memory(framework, "llama-3.2-1b", loss=loss, checkpointing="full").per_device_bytes
        return float(found.high) / float(found.low)

    assert width(None, "standard") > 1.1 * width(None, "fused")
    assert width("megatron", "standard") == pytest.approx(width("megatron", "fused"), rel=0.05)
