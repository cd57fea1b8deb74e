"""Counts, operations and cache against the catalogue's figures and against each other."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.models.transformer import (
    cache_elements,
    count_parameters,
    decode_flops_per_token,
    forward_flops_per_token,
    mean_context,
    shape_from_spec,
)
from capacity_tui.engine.models.transformer.counts import kv_elements_per_token

ROWS = {row.id: row for row in load_catalog().architectures.values() if row.kind != "cnn"}
COUNTED = [row.id for row in ROWS.values() if row.params_total]
# What Transformers' classes have of each: elements of the table of embeddings, and what a token leaves in the cache.
CHECKED = {row["model"]: row for row in csv.DictReader(Path(__file__).with_name("counts.csv").read_text().splitlines())}


def shape(name, **overrides):
    return shape_from_spec(ROWS[name], overrides)


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_those_of_the_instantiated_class(name):
    counts = count_parameters(shape(name))
    assert int(counts.total) == counts.total == ROWS[name].params_total
    assert int(counts.active) == ROWS[name].params_active
    if ROWS[name].kind != "vit":
        assert counts.token_embedding == int(CHECKED[name]["embedding"])


def test_no_transformer_of_the_catalogue_is_left_out():
    # The weights of these three were never published, so there is nothing to count.
    assert ROWS.keys() - set(COUNTED) <= {"mt-nlg-530b", "chinchilla-70b", "palm-540b"}


@pytest.mark.parametrize("name", [name for name, row in CHECKED.items() if row["cache_elements_per_token"]])
def test_cache_per_token(name):
    assert kv_elements_per_token(shape(name)) == int(CHECKED[name]["cache_elements_per_token"])


def test_encoders_keep_no_cache():
    assert kv_elements_per_token(shape("bert-base")) == 0


@pytest.mark.parametrize("name", COUNTED)
def test_parts_add_up_and_a_token_meets_no_more_than_it_can(name):
    model = shape(name)
    counts = count_parameters(model)
    mixture = counts.router_per_moe_layer + counts.shared_experts_per_layer + counts.experts * counts.expert
    blocks = counts.layers * (counts.attention_per_layer + counts.norms_per_layer + counts.cross_attention_per_layer)
    blocks += counts.dense_layers * counts.mlp_per_dense_layer + counts.moe_layers * mixture
    stored = blocks / counts.layer_uses + counts.outside_layers
    assert stored == pytest.approx(counts.total, rel=1e-12)
    # Weights that several layers share count once, and a token meets them in each of these layers.
    reused = max(-counts.other_weights, 0)
    assert 0 < counts.matmul_per_token <= (counts.active + reused) * model.layer_uses
    assert counts.dense_layers + counts.moe_layers + model.plain_layers == model.layers
    kind = model.attention_kind
    attending = kind.full_layers + kind.window_layers
    if model.has_state_everywhere:
        assert kind.linear_layers == model.layers >= attending
    else:
        assert attending + kind.linear_layers == model.layers


@pytest.mark.parametrize(
    ("name", "tokens"),
    [("vit-b-16", 197), ("clip-vit-l-14", 257), ("siglip-so400m-14", 27**2), ("dinov3-vit-b-16", 14**2 + 5)],
)
def test_a_picture_is_as_many_tokens_as_its_patches_and_those_that_stand_with_them(name, tokens):
    assert shape(name).fixed_length == tokens


def test_operations_follow_the_textbook():
    llama = shape("llama-3-8b")
    counts = count_parameters(llama)
    matmul = counts.total - counts.token_embedding - counts.final - 32 * counts.norms_per_layer
    assert counts.matmul_per_token == matmul
    attention = 4 * 32 * 4096 * 8192
    assert forward_flops_per_token(llama, 8192, causal=False) == 2 * matmul + attention
    assert forward_flops_per_token(llama, 8192) == pytest.approx(2 * matmul + attention / 2, rel=1e-4)
    assert decode_flops_per_token(llama, 8192) == 2 * matmul + attention


def test_vision_operations_match_the_published_multiply_adds():
    # torchvision prints 17.56 and 61.55 G multiply-adds for an image of 196 patches and a class token.
    for name, published in (("vit-b-16", 17.56e9), ("vit-l-16", 61.55e9)):
        assert forward_flops_per_token(shape(name), 197) * 197 / 2 == pytest.approx(published, rel=0.005)


@pytest.mark.parametrize("name", ["gemma-3-27b", "gpt-oss-120b", "qwen3.5-27b", "deepseek-v4-pro", "glm-5"])
def test_long_contexts_cost_less_than_full_attention(name):
    model = shape(name)
    growth = decode_flops_per_token(model, 131_072) - decode_flops_per_token(model, 65_536)
    plain = 2 * 65_536 * model.layers * model.heads * (model.head_dim + model.v_head_dim)
    assert 0 < growth < 0.6 * plain
    assert cache_elements(model, 131_072) < 131_072 * 2 * model.layers * model.heads * model.head_dim


def test_windowed_layers_stop_growing():
    model = shape("mistral-7b-v0.1")
    assert cache_elements(model, 4096) == cache_elements(model, 32_768)
    assert cache_elements(model, 100) == 100 * kv_elements_per_token(model)


@given(seq_len=st.integers(1, 4000), window=st.integers(0, 4000))
def test_mean_context_is_the_mean(seq_len, window):
    seen = [min(token, window or token) for token in range(1, seq_len + 1)]
    assert mean_context(seq_len, window) == pytest.approx(sum(seen) / seq_len)


@settings(max_examples=25, deadline=None)
@given(
    layers=st.lists(st.integers(1, 200), min_size=2, max_size=3),
    hidden=st.integers(1, 64).map(lambda n: n * 128),
    name=st.sampled_from(["gpt2-small", "llama-3-8b", "gemma-3-1b", "mixtral-8x7b", "deepseek-v3", "t5-base"]),
)
def test_arrays_agree_with_scalars(layers, hidden, name):
    layers = [count + 3 for count in layers]
    many = shape(name, layers=np.array(layers), hidden=hidden, heads=16, kv_heads=4)
    each = [shape(name, layers=count, hidden=hidden, heads=16, kv_heads=4) for count in layers]
    for measure in (
        lambda one: count_parameters(one).total,
        lambda one: count_parameters(one).active,
        lambda one: count_parameters(one).matmul_per_token,
        lambda one: forward_flops_per_token(one, 4096),
        kv_elements_per_token,
        lambda one: cache_elements(one, 10_000),
    ):
        assert np.broadcast_to(measure(many), len(layers)).tolist() == [float(measure(one)) for one in each]


@given(layers=st.integers(1, 100), width=st.integers(1, 32), heads=st.integers(1, 32), more=st.integers(1, 9))
def test_a_larger_model_has_more_of_everything(layers, width, heads, more):
    small = shape_from_spec(None, {"layers": layers, "hidden": width * heads, "heads": heads})
    large = replace(small, layers=layers + more)
    assert count_parameters(large).total > count_parameters(small).total
    assert forward_flops_per_token(large, 128) > forward_flops_per_token(small, 128)


def test_families_have_the_sizes_of_their_namesakes():
    assert count_parameters(shape_from_spec(None, {})).total == 124_439_808
    assert count_parameters(shape_from_spec(None, {}, "transformer_encoder")).total == 109_482_240


@pytest.mark.parametrize("sign", [{"gated": True}, {"kv_heads": 8}, {"ffn": 14336}])
def test_sizes_alone_that_imply_the_modern_kind(sign):
    """RMSNorm, rotary positions and a head of its own, unless the plan says otherwise; what is assumed is told."""
    spec = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256}
    modern = shape_from_spec(None, spec)
    assert count_parameters(modern).total == ROWS["llama-3-8b"].params_total
    assert "RMSNorm" in modern.assumed[0]
    found = shape_from_spec(None, {"layers": 2, "hidden": 4096, "heads": 32, **sign})
    assert (found.norm, found.norm_vectors, found.positions, found.tied_embeddings) == ("RMSNorm", 1, 0, False)
    told = shape_from_spec(None, {**spec, "norm": "LayerNorm", "tied_embeddings": True, "learned_positions": True})
    assert (told.norm_vectors, told.tied_embeddings) == (2, True)
    assert told.positions > 0


def test_biases_can_be_set():
    plain, biased = (shape_from_spec(None, {"layers": 1, "biases": given}) for given in (False, "qkv+output"))
    assert count_parameters(biased).total - count_parameters(plain).total == 4 * 768
    assert shape_from_spec(None, {"biases": True}).biases == shape_from_spec(None, {}).biases
    with pytest.raises(PlanError, match="not a bias"):
        shape_from_spec(None, {"biases": "qvk"})


def test_aliases_of_the_planner_document():
    spec = {"d_model": 1024, "n_layers": 24, "n_heads": 16, "vocab_size": 50257, "seq_len": 1024}
    assert count_parameters(shape_from_spec(None, spec)).total == ROWS["gpt2-medium"].params_total


def test_sizes_that_followed_from_a_changed_one_follow_it():
    wider = shape("gpt2-small", hidden=1536)
    assert (wider.head_dim, wider.ffn) == (128, 6144)
    assert shape("gpt2-small", heads=6).kv_heads == 6
    assert shape("llama-3-8b", heads=64).kv_heads == 8


def test_experts_added_to_a_dense_model_say_what_they_assume():
    mixture = shape("llama-3-8b", experts=8)
    assert (mixture.experts_active, mixture.moe_layers) == (2, 32)
    assert mixture.assumed == ("two experts active",)


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"heads": 32, "kv_heads": 5}, "kv_heads"),
        ({"layers": -1}, "layers"),
        ({"layers": 2_000_000}, "layers"),
        ({"layers": 0}, "layers"),
        ({"hidden": 10**12}, "hidden"),
        ({"hidden": float("nan")}, "hidden"),
        ({"heads": 33}, "heads"),
        ({"vocab": "many"}, "vocab"),
        ({"vocab": True}, "vocab"),
        ({"gated": "perhaps"}, "gated"),
        ({"experts": 4, "experts_active": 8}, "experts_active"),
        ({"experts": 4, "moe_every": 0}, "moe_every"),
        ({"experts": 8, "first_dense_layers": 99}, "first_dense_layers"),
    ],
)
def test_impossible_sizes_are_refused_with_their_field(overrides, field):
    with pytest.raises(CapacityError) as caught:
        shape("llama-3-8b", **overrides)
    assert caught.value.place.field == f"model.spec.{field}"


def test_unknown_keys_name_the_nearest():
    with pytest.raises(PlanError, match=r"model\.spec\.hiden: unknown key; did you mean hidden"):
        shape("llama-3-8b", hiden=4096)


def test_an_indexer_narrows_what_absorbed_heads_read_of_a_long_context():
    model = shape("glm-5")
    index = model.attention_kind.sizes.indexer

    def at(context):
        return model.attention_kind.decode_flops(lambda window, _stride: min(window or context, context))

    assert at(131_072) - at(65_536) == pytest.approx(model.layers * index.flops(65_536))
