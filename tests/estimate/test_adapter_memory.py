"""What adapters and frozen bases take beside their parameters, counted tensor by tensor."""

from __future__ import annotations

from typing import Any

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import MemoryEstimate, estimate_plan
from capacity_tui.engine.plan.files import plan_from_data

CATALOG = load_catalog()
# Llama 3 8B at 4096 tokens, 4 samples.
LAYERS, HIDDEN, FFN, KEYS, VOCAB, TOKENS = 32, 4096, 14336, 1024, 128256, 4 * 4096
OUTSIDE = 2 * VOCAB * HIDDEN


def memory(framework: str = "transformers", zero: int = 0, devices: int = 1, **training: Any) -> MemoryEstimate:
    adapter = {"kind": "lora", "rank": 16, "targets": "attention"} | training.pop("adapter", {})
    settings = {
        "seq_len": 4096,
        "micro_batch": 4,
        "global_batch": 4 * devices,
        "checkpointing": "full",
        "loss": "fused",
    }
    data = {
        "task": "finetune",
        "model": {"name": "llama-3-8b"},
        "training": {**settings, "framework": framework, "master_weights": "none", "adapter": adapter, **training},
        "hardware": {"name": "h200-sxm", "devices": devices},
        "parallelism": {"zero": zero},
    }
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory


def activations(found: MemoryEstimate) -> float:
    return float(found.parts["activations"])


def test_adapters_in_fp32_put_out_once_more_in_fp32_in_the_layer_at_work():
    wide, narrow = (memory(adapter={"fp32": switch}) for switch in (True, False))
    assert activations(wide) - activations(narrow) == pytest.approx(TOKENS * 4 * (2 * HIDDEN + 2 * KEYS))


def test_separate_adapters_keep_a_copy_of_their_input_each():
    row = CATALOG.frameworks["transformers"]
    attention, outputs = (memory(adapter={"fp32": False, "targets": name}) for name in ("attention", "query+value"))
    # Queries, keys, values and the attention's output against queries and values.
    assert activations(attention) - activations(outputs) == pytest.approx(TOKENS * 2 * row.adapter_copies * 2 * HIDDEN)


def test_sharded_frozen_units_keep_inputs_and_their_gradients_to_the_end_of_the_backward_pass():
    """As much as the checkpoints themselves once more, beside the layer at work."""
    alone, sharded = memory(), memory(zero=3, devices=8)
    assert activations(sharded) - activations(alone) == pytest.approx(TOKENS * LAYERS * HIDDEN * 2, rel=0.05)
    assert sharded.peak == "at the end of the backward pass"


def test_all_units_with_trained_weights_free_their_inputs_as_the_backward_pass_goes():
    adapted, whole = (
        memory(zero=3, devices=8),
        estimate_plan(
            plan_from_data(
                {
                    "task": "finetune",
                    "model": {"name": "llama-3-8b"},
                    "training": {"seq_len": 4096, "micro_batch": 4, "global_batch": 32, "checkpointing": "full",
                                 "loss": "fused", "framework": "transformers"},
                    "hardware": {"name": "h200-sxm", "devices": 8},
                    "parallelism": {"zero": 3},
                }
            ),
            None,
            CATALOG,
        ).estimate.memory,
    )  # fmt: skip
    end = "backward peak"
    assert float(adapted.timeline[end]) > 2 * TOKENS * LAYERS * HIDDEN * 2
    assert float(whole.parts["activations"]) < activations(adapted)


def test_a_decoder_that_learns_classes_has_no_head_over_the_vocabulary():
    whole, classes = memory(), memory(predicted_tokens=0)
    lost = float(whole.parts["weights"]) - float(classes.parts["weights"])
    assert lost == pytest.approx(2 * VOCAB * HIDDEN, rel=1e-3)


def test_a_base_in_fp32_is_so_as_a_whole():
    wide, narrow = (memory(quantization=stored) for stored in ("fp32", "bf16"))
    parameters = 8.03e9
    assert float(wide.parts["weights"]) - float(narrow.parts["weights"]) == pytest.approx(2 * parameters, rel=1e-3)


class TestRestOfAQuantizedBase:
    def test_norms_in_fp32_double_what_layers_pass_on_and_a_head_in_fp32_its_weights(self):
        none, norms, whole = (memory(adapter={"kind": "qlora", "fp32_base": word}) for word in ("none", "norms", "all"))
        assert activations(norms) - activations(none) > TOKENS * LAYERS * HIDDEN * 2
        assert float(norms.parts["weights"]) == float(none.parts["weights"])
        assert float(whole.parts["weights"]) - float(none.parts["weights"]) == pytest.approx(2 * OUTSIDE, rel=1e-3)

    def test_is_left_as_it_is_where_it_is_sharded(self):
        whole, none = (
            memory(zero=3, devices=8, adapter={"kind": "qlora", "fp32_base": word}) for word in ("all", "none")
        )
        assert float(whole.per_device_bytes.value) == pytest.approx(float(none.per_device_bytes.value))

    @pytest.mark.parametrize(("stored", "word"), [("nf4", "norms"), ("gptq-4", "none")])
    def test_follows_the_format_where_nothing_is_said(self, stored, word):
        given, left = (
            memory(adapter={"kind": "qlora", **switch}, quantization=stored) for switch in ({"fp32_base": word}, {})
        )
        assert float(left.per_device_bytes.value) == float(given.per_device_bytes.value)

    def test_has_logits_of_sixteen_bytes_out_of_mixed_precision(self):
        found = memory(adapter={"kind": "qlora", "fp32_base": "all"}, loss="standard", logits="bf16")
        assert float(found.parts["logits"]) == pytest.approx(16 * TOKENS * VOCAB, rel=0.01)


def trained(framework: str, model: str = "llama-3-8b", **training: Any) -> MemoryEstimate:
    data = {
        "task": "train",
        "model": {"name": model},
        "training": {"seq_len": 1024, "global_batch": 8, "framework": framework, **training},
        "hardware": {"name": "h200-sxm", "devices": 8},
        "parallelism": {"zero": 1},
    }
    return estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory


def test_fp8_copies_of_matrices_and_their_transposes_lie_beside_them_or_alone():
    given = ({"fp8_weights": False}, {"fp8_weights": True}, {})
    beside, alone, left = (trained("megatron", precision="fp8", **words) for words in given)
    matrices = 8_030_261_248 - OUTSIDE
    assert float(beside.parts["weights"] - alone.parts["weights"]) == pytest.approx(2 * matrices, rel=1e-3)
    assert float(left.parts["weights"]) == float(beside.parts["weights"])
    recipe = trained("nemo", precision="fp8")
    assert float(recipe.parts["weights"]) == float(alone.parts["weights"])
    assert float(trained("megatron").parts["weights"]) == pytest.approx(2 * 8_030_261_248, rel=1e-3)


def test_buffers_of_a_fixed_size_do_not_shrink_with_the_model():
    small, other = (trained(name, "pythia-70m") for name in ("deepspeed", "ddp"))
    assert float(small.parts["buffers"]) >= CATALOG.frameworks["deepspeed"].fixed_bucket_mib * 2**20
    assert float(other.parts["buffers"]) < 2**30


def test_separate_operations_of_an_optimizer_take_a_sixth_time_four_bytes_a_parameter():
    """2 of weights, 2 of gradients; 4 of master copy, 8 of states, 4 of cast gradients and 4 written aside, sharded."""
    found = trained("internevo", seq_len=64, checkpointing="full")
    assert float(found.per_device_bytes.value) == pytest.approx((4 + 20 / 8) * 8_030_261_248, rel=0.02)


def test_dropout_keeps_two_masks_of_a_byte_an_element_in_each_layer():
    tokens = 1024
    without, dropped = (trained("megatron", dropout=share, micro_batch=8, global_batch=64) for share in (0.0, 0.1))
    assert activations(dropped) - activations(without) == pytest.approx(8 * tokens * LAYERS * HIDDEN * 2, rel=0.05)


def test_ranks_of_a_model_have_groups_of_their_own():
    def context(framework: str, **parallelism: int) -> float:
        data = {
            "task": "train",
            "model": {"name": "gpt2-large"},
            "training": {"seq_len": 1024, "global_batch": 64, "framework": framework},
            "hardware": {"name": "h200-sxm", "devices": 8},
            "parallelism": parallelism,
        }
        return float(estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory.parts["context"])

    groups = {}
    for name in ("megatron", "fsdp"):
        alone = context(name, dp=8)
        communicator = context(name, dp=4, tp=2) - alone
        groups[name] = (communicator, context(name, dp=4, pp=2) - alone)
    each = groups["fsdp"][0]
    assert groups["megatron"][0] == pytest.approx(2 * each)
    # The first and the last stage of a pipeline share the embedding.
    assert groups["megatron"][1] == pytest.approx(3 * each)
    assert groups["fsdp"][1] == pytest.approx(each)


def test_adapters_beside_attention_are_not_spread_with_the_experts():
    """They stand on every device: all of their states, whatever share of the experts a device holds."""

    def states(ep: int) -> float:
        adapter = {"kind": "lora", "rank": 32, "targets": "attention"}
        data = {
            "task": "finetune",
            "model": {"name": "qwen3-30b-a3b"},
            "training": {"seq_len": 1024, "micro_batch": 1, "global_batch": 4, "framework": "axolotl",
                         "adapter": adapter},
            "hardware": {"name": "h200-sxm", "devices": 4},
            "parallelism": {"zero": 0, "ep": ep},
        }  # fmt: skip
        return float(estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory.parts["optimizer"])

    assert states(4) == pytest.approx(states(1))


@pytest.mark.parametrize(
    ("model", "targets", "trained"),
    [
        # attention of 4 matrices, 128 experts of 3 matrices each, rank 32, in 48 layers
        ("qwen3-30b-a3b", "all", 48 * 32 * (2 * (2048 + 4096) + 2 * (2048 + 512) + 128 * 3 * (2048 + 768))),
        ("qwen3-30b-a3b", "attention", 48 * 32 * (2 * (2048 + 4096) + 2 * (2048 + 512))),
        # PEFT prints 120 350 720 at rank 8 with an adapter on the head, of 8 (4096 + 32000)
        ("mixtral-8x7b", "all", 4 * (120_350_720 - 8 * (4096 + 32000))),
        # its experts are one tensor a layer, no modules
        ("gpt-oss-20b", "all", 24 * 32 * (2 * (2880 + 4096) + 2 * (2880 + 512))),
        # 24 blocks of the encoder and 24 of the decoder, which attends to the first too; no gate
        ("t5-large", "all", 24 * 32 * (3 * 4 * (1024 + 1024) + 2 * 2 * (1024 + 4096))),
    ],
)
def test_every_matrix_has_an_adapter_that_of_each_expert_too(model, targets, trained):
    data = {
        "task": "finetune",
        "model": {"name": model},
        "training": {"seq_len": 512, "micro_batch": 1, "global_batch": 1, "framework": "axolotl",
                     "adapter": {"kind": "lora", "rank": 32, "targets": targets}},
        "hardware": {"name": "h200-sxm", "devices": 1},
    }  # fmt: skip
    parts = estimate_plan(plan_from_data(data), None, CATALOG).estimate.memory.parts
    assert float(parts["optimizer"]) == pytest.approx(8 * trained)


@pytest.mark.parametrize(
    ("model", "framework", "remark", "widest"),
    [
        # 28 layers of 64 experts of 3 matrices of 2560 x 1664, in 16 bits
        ("aria", "transformers", "experts in 16 bits", 28 * 64 * 3 * 2560 * 1664 * 2),
        ("aria", "unsloth", "experts packed too", 0),
        ("llama-4-scout", "transformers", "experts packed too", 0),
        ("mixtral-8x7b", "transformers", "experts packed too", 0),
    ],
)
def test_experts_of_one_tensor_are_not_packed(model, framework, remark, widest):
    data = {
        "task": "finetune",
        "model": {"name": model},
        "training": {"seq_len": 512, "micro_batch": 1, "global_batch": 1, "framework": framework, "method": "qlora"},
        "hardware": {"name": "h200-sxm", "devices": 1},
    }
    answer = estimate_plan(plan_from_data(data), None, CATALOG)
    assert any(note.startswith(remark) for note in answer.estimate.basis.assumed)
    weights = float(answer.estimate.memory.parts["weights"])
    assert weights > widest if widest else weights < CATALOG.architectures[model].params_total
