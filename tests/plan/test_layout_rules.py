"""Rules of layouts, and sizes that cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.models import read_model_file
from capacity_tui.engine.models.transformer import shape_from_spec
from capacity_tui.engine.plan import Layout, Plan, possible, refuse_impossible
from capacity_tui.engine.plan.layout_rules import LAYOUT_RULES
from capacity_tui.engine.present.frameworks import framework_files
from capacity_tui.engine.solve import answer

LLAMA = {"layers": 32.0, "heads": 32.0, "kv_heads": 8.0, "ffn": 14336.0, "vocab": 128256.0}


def plan(model: str, devices: int, task: str = "train", **parallel: object) -> Plan:
    return Plan.model_validate(
        {
            "task": task,
            "model": {"name": model},
            "parallelism": parallel,
            "hardware": {"name": "h100-sxm-80gb", "devices": devices},
        }
    )


def test_feed_forwards_of_unlike_widths_are_no_remainder() -> None:
    resolve_plan(plan("gemma-4-e2b", 2, tp=2), load_catalog(), None)


@pytest.mark.parametrize(
    ("model", "devices", "parallel", "field", "words"),
    [
        ("llama-3-8b", 24, {"tp": 3}, "parallelism.tp", "32 heads, TP 3"),
        ("llama-3-8b", 64, {"tp": 64}, "parallelism.tp", "32 heads, TP 64"),
        ("llama-3-8b", 64, {"pp": 64}, "parallelism.pp", "32 layers, PP 64"),
        ("llama-3-8b", 16, {"pp": 8, "interleave": 8}, "parallelism.pp", "PP 8 x interleave 8"),
        ("llama-3-8b", 3, {"cp": 3}, "parallelism.cp", "2 048 tokens, CP 3"),
        ("mixtral-8x7b", 12, {"ep": 3}, "parallelism.ep", "8 experts, EP 3"),
        ("llama-3-8b", 8, {"ep": 8}, "parallelism.ep", "0 experts, EP 8"),
        ("llama-3-8b", 8, {"tp": 3}, "parallelism", "3 x 1 x 1 = 3, devices 8"),
        ("llama-3-8b", 8, {"dp": 3}, "parallelism.dp", "3 x 1 x 1 x 1, devices 8"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_with_its_numbers(
    model: str, devices: int, parallel: dict[str, int], field: str, words: str
) -> None:
    with pytest.raises(PlanError) as caught:
        estimate_plan(plan(model, devices, **parallel))
    assert caught.value.place.field == field
    assert words in str(caught.value)


def test_serving_refuses_what_splits_heads_apart_but_not_software_that_pads_them() -> None:
    with pytest.raises(PlanError, match="32 heads, TP 24"):
        estimate_plan(plan("llama-3-8b", 24, "infer", tp=24))
    padded = plan("llama-3-8b", 24, "infer", tp=24)
    neuron = padded.model_copy(
        update={
            "inference": padded.inference.model_copy(update={"engine": "neuron"}),
            "hardware": padded.hardware.model_copy(update={"name": "trainium1"}),
        }
    )
    assert estimate_plan(neuron).estimate.memory.reserved_bytes.value > 0


@pytest.mark.parametrize(
    ("parallel", "devices", "code"),
    [
        ({"tp": 16}, 16, "layout_kv_heads_copied"),
        ({"pp": 5}, 5, "layout_equal_stages"),
        ({"pp": 4, "dp": 1}, 4, "layout_micro_batches"),
    ],
)
def test_what_software_works_around_is_remarked_on_in_answers_and_files(
    parallel: dict[str, int], devices: int, code: str
) -> None:
    wanted = plan("llama-3-8b", devices, **parallel)
    found = {note.code: note for note in answer(wanted).estimate.warnings}
    assert code in found
    files = framework_files(resolve_plan(wanted, load_catalog()), load_catalog())
    assert any(found[code].title in text for text in files.values())


def test_a_layout_that_megatron_splits_with_embedding_and_loss_as_layers_is_possible() -> None:
    wanted = plan("llama-3.1-405b", 256, dp=4, tp=4, pp=16, interleave=8)
    assert estimate_plan(wanted).estimate.memory.reserved_bytes.value > 0


@given(tp=st.lists(st.integers(1, 80), min_size=1, max_size=6), pp=st.integers(1, 70), ep=st.sampled_from([1, 2, 3, 8]))
def test_arrays_judge_as_single_layouts_do(tp: list[int], pp: int, ep: int) -> None:
    sizes = np.array(tp, dtype=np.float64)
    together = possible(Layout(devices=sizes * pp * ep, dp=ep, tp=sizes, pp=pp, ep=ep, experts=8.0, **LLAMA))
    for size, judged in zip(sizes, together, strict=True):
        alone = Layout(devices=size * pp * ep, dp=ep, tp=size, pp=pp, ep=ep, experts=8.0, **LLAMA)
        try:
            refuse_impossible(alone)
        except PlanError:
            assert not judged
        else:
            assert judged


def test_every_rule_has_its_own_name_and_words() -> None:
    assert len({rule.id for rule in LAYOUT_RULES}) == len(LAYOUT_RULES)
    assert all(rule.broken and rule.remedy for rule in LAYOUT_RULES)


CONFIG = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"ffn": 0}, "ffn"),
        ({"v_head_dim": 0}, "v_head_dim"),
        ({"vocab": 0}, "vocab"),
        ({"experts": 8, "moe_ffn": 0}, "moe_ffn"),
        ({"experts": 8, "experts_active": 0}, "experts_active"),
        ({"experts": 8, "experts_shared": 1, "shared_ffn": 0}, "shared_ffn"),
        ({"kv_lora_rank": 64, "head_dim": 64}, "qk_nope_head_dim"),
        ({"kv_lora_rank": 64, "qk_nope_head_dim": 64}, "qk_rope_head_dim"),
        ({"moe_every": 0, "experts": 8}, "moe_every"),
    ],
)
def test_a_size_of_nothing_is_refused(spec: dict[str, object], named: str) -> None:
    with pytest.raises(PlanError) as refused:
        shape_from_spec(None, spec)
    assert refused.value.one_line() == f"model.spec.{named}: too small; allowed: at least 1"


@pytest.mark.parametrize("key", ["intermediate_size", "v_head_dim", "num_hidden_layers", "hidden_size"])
def test_a_configuration_names_its_own_key(tmp_path: Path, key: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG | {key: 0}), "utf-8")
    with pytest.raises(PlanError) as refused:
        read_model_file(file)
    assert refused.value.one_line() == f"{file}: {key}: out of range: 0; allowed: 1 to 1 000 000 000"


def test_latent_attention_without_its_widths_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    bare = {key: value for key, value in CONFIG.items() if not key.startswith("qk_")}
    file.write_text(json.dumps(bare | {"head_dim": 64}), "utf-8")
    with pytest.raises(PlanError, match="qk_nope_head_dim: too small"):
        read_model_file(file)


def test_parts_need_all_their_sizes() -> None:
    row = load_catalog().architectures["deepseek-v3"]
    with pytest.raises(PlanError, match="qk_rope_head_dim: too small"):
        shape_from_spec(row, {"qk_rope_head_dim": 0})
