"""Counts of model classes against Transformers' own: towers, heads, shared layers and layers with a state."""

from __future__ import annotations

import ast
import json
import math
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.models import shape_from_huggingface
from capacity_tui.engine.models.model_parts import load_model_parts
from capacity_tui.engine.models.transformer import count_parameters
from capacity_tui.engine.models.transformer.configuration import shape_from_config
from capacity_tui.engine.models.transformer.counts import decode_flops_per_token, kv_elements_per_token
from capacity_tui.engine.models.transformer.shape import load_file_names, load_traits
from capacity_tui.engine.plan import Plan

RECORDED = json.loads((Path(__file__).parent / "configurations.json").read_text())
"""Configurations with the parameters that Transformers 5.24 counts on the meta device (2026-11-24), or that published
weights have; most are the defaults of their class, without the keys that no count depends on."""


@pytest.mark.parametrize("name", RECORDED)
def test_a_class_has_as_many_parameters_as_transformers_counts(name: str) -> None:
    shape = shape_from_config(RECORDED[name]["config"])
    assert count_parameters(shape).total == pytest.approx(RECORDED[name]["parameters"], rel=0.005)


def test_a_tower_of_pictures_says_that_texts_are_not_counted_and_is_not_trained_by_itself() -> None:
    def planned(task: str) -> Plan:
        return Plan.model_validate({"model": {"name": "clip-vit-b-32"}, "hardware": {"name": "t4"}, "task": task})

    assert "the tower of texts not counted" in estimate_plan(planned("infer")).estimate.work.assumed
    with pytest.raises(CapacityError, match="not trained by itself"):
        estimate_plan(planned("train"))


def test_pages_say_how_many_classes_are_known_by_name() -> None:
    parts, known, names = load_model_parts(), load_traits().classes, load_file_names().counted_as
    classes = {*parts.classes, *known, *(name for name in names if name[0].isupper())}
    pages = Path(__file__).parents[2] / "docs" / "other-tools.md"
    assert f"{len(classes)} classes are known by name" in pages.read_text()


def test_every_formula_can_be_read() -> None:
    parts = load_model_parts()
    formulas = [formula for _, formula in parts.formulas.functions.values()]
    formulas += [formula for formula, _ in parts.formulas.towers.values()]
    for part in (*parts.classes.values(), *parts.endings.values()):
        formulas.append(part.other_weights)
        for formula in part.fields.values():
            formulas += [formula] if isinstance(formula, str) else list(formula.values())
    for formula in formulas:
        ast.parse(formula.strip(), mode="eval")


def test_llava_as_it_was_published_leaves_out_what_its_classes_have_by_default(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064},
        "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096,
            "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14,
        },
        "vision_feature_layer": -2,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    shape = shape_from_huggingface(tmp_path)
    assert count_parameters(shape).total == pytest.approx(7_063_427_072, rel=1e-6)
    assert shape.assumed == ("pictures and sound not counted: their towers' weights alone",)


def test_qwen_vl_as_it_was_published_has_its_text_at_the_top() -> None:
    config = {
        "architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl", "hidden_size": 1536,
        "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "vocab_size": 151936, "tie_word_embeddings": True,
        "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "hidden_size": 1536,
                          "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2},
    }  # fmt: skip
    assert count_parameters(shape_from_config(config)).total == pytest.approx(2_208_985_600, rel=1e-6)


def test_shared_layers_weigh_once_and_work_each_time() -> None:
    config = RECORDED["AlbertModel"]["config"]
    once, twelve = (
        shape_from_config({**config, "num_hidden_layers": layers, "num_hidden_groups": 1}) for layers in (1, 12)
    )
    assert count_parameters(once).total == count_parameters(twelve).total
    assert count_parameters(twelve).matmul_per_token > 11 * count_parameters(once).matmul_per_token


def test_layers_with_a_state_keep_no_cache() -> None:
    shape = shape_from_config(RECORDED["MambaForCausalLM"]["config"])
    assert kv_elements_per_token(shape) == 0
    assert shape.attention_kind.state() > 0
    assert decode_flops_per_token(shape, 100) == decode_flops_per_token(shape, 100_000)


def test_some_layers_of_a_hybrid_attend() -> None:
    shape = shape_from_config(RECORDED["BambaForCausalLM"]["config"] | {"attn_layer_indices": [9, 18, 27]})
    assert (shape.attention_kind.full_layers, shape.attention_kind.linear_layers) == (3, 29)


SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=5)


@given(data=st.data(), name=st.sampled_from(sorted(RECORDED)))
def test_damaged_sizes_are_refused_and_never_crash(data: st.DataObject, name: str) -> None:
    config = json.loads(json.dumps(RECORDED[name]["config"]))
    holders = [config, *(value for value in config.values() if isinstance(value, dict))]
    holder = data.draw(st.sampled_from(holders))
    key = data.draw(st.sampled_from(sorted(holder)))
    holder[key] = data.draw(SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS))
    try:
        shape_from_config(config)
    except CapacityError as error:
        assert error.one_line()


@pytest.mark.parametrize("task", ["infer", "train"])
@pytest.mark.parametrize(
    "name", ["MambaForCausalLM", "BambaForCausalLM", "AlbertModel", "Qwen2_5_VLForConditionalGeneration"]
)
def test_plans_of_such_models_are_estimated_in_full(tmp_path: Path, name: str, task: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(RECORDED[name]["config"]))
    plan = {"task": task, "model": {"config": str(tmp_path)}, "hardware": {"name": "h200", "devices": 8}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = estimate_plan(Plan.model_validate(plan)).estimate
    assert estimate.model.parameters == pytest.approx(RECORDED[name]["parameters"], rel=0.005)
    assert 0 < estimate.memory.per_device_bytes.high < math.inf
