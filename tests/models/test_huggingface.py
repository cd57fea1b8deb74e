"""Model files as publishers ship them, and damaged ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError, StorageError
from capacity_tui.engine.models import read_model_file, shape_from_huggingface
from capacity_tui.engine.models.transformer import count_parameters, shape_from_spec


def sizes(layers, hidden, heads, ffn, vocab, **more):
    """The keys most configurations share."""
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        **more,
    }


LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
LLAMA4 = {
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_experts_per_tok": 1,
    "attention_chunk_size": 8192,
    "intermediate_size_mlp": 16384,
    "model_type": "llama4_text",
}
LINEAR = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 48,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
V4 = {"head_dim": 512, "num_key_value_heads": 1, "sliding_window": 128, "hc_mult": 4, "index_n_heads": 64}
V4 |= {"index_head_dim": 128, "n_shared_experts": 1, "num_experts_per_tok": 6}

CONFIGS = {
    "llama-3-8b": ("LlamaForCausalLM", sizes(32, 4096, 32, 14336, 128256, num_key_value_heads=8)),
    "llama-3.2-1b": (
        "LlamaForCausalLM",
        sizes(16, 2048, 32, 8192, 128256, num_key_value_heads=8, head_dim=64, tie_word_embeddings=True),
    ),
    "mistral-nemo-12b": (
        "MistralForCausalLM",
        sizes(40, 5120, 32, 14336, 131072, num_key_value_heads=8, head_dim=128, sliding_window=None),
    ),
    "mixtral-8x7b": (
        "MixtralForCausalLM",
        sizes(32, 4096, 32, 14336, 32000, num_key_value_heads=8, num_local_experts=8, num_experts_per_tok=2),
    ),
    "qwen2.5-0.5b": (
        "Qwen2ForCausalLM",
        sizes(
            24, 896, 14, 4864, 151936,
            num_key_value_heads=2, tie_word_embeddings=True, use_sliding_window=False, sliding_window=32768,
        ),
    ),
    "qwen3-30b-a3b": (
        "Qwen3MoeForCausalLM",
        sizes(
            48, 2048, 32, 6144, 151936,
            num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8,
            moe_intermediate_size=768, decoder_sparse_step=1, tie_word_embeddings=False,
        ),
    ),
    "gemma-7b": ("GemmaForCausalLM", sizes(28, 3072, 16, 24576, 256000, head_dim=256)),
    "gemma-2-9b": (
        "Gemma2ForCausalLM",
        sizes(42, 3584, 16, 14336, 256000, num_key_value_heads=8, head_dim=256, sliding_window=4096),
    ),
    "gemma-3-4b": (
        "Gemma3ForConditionalGeneration",
        {
            "text_config": {
                "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
                "sliding_window": 1024, "model_type": "gemma3_text",
            },
            "vision_config": {"hidden_size": 1152},
        },
    ),
    "phi-2": ("PhiForCausalLM", sizes(32, 2560, 32, 10240, 51200)),
    "phi-3.5-moe": (
        "PhimoeForCausalLM",
        sizes(
            32, 4096, 32, 6400, 32064,
            num_key_value_heads=8, num_local_experts=16, num_experts_per_tok=2,
            attention_bias=True, lm_head_bias=True,
        ),
    ),
    "gpt2-xl": (
        "GPT2LMHeadModel",
        {"n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257},
    ),
    "pythia-1b": ("GPTNeoXForCausalLM", sizes(16, 2048, 8, 8192, 50304, max_position_embeddings=2048)),
    "gpt-j-6b": ("GPTJForCausalLM", {"n_layer": 28, "n_embd": 4096, "n_head": 16, "vocab_size": 50400}),
    "opt-350m": (
        "OPTForCausalLM",
        {
            "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "ffn_dim": 4096,
            "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        },
    ),
    "opt-1.3b": (
        "OPTForCausalLM",
        {
            "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 32, "ffn_dim": 8192,
            "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 2048,
        },
    ),
    "falcon-7b": (
        "FalconForCausalLM",
        {
            "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71, "num_kv_heads": 71,
            "vocab_size": 65024, "multi_query": True, "new_decoder_architecture": False,
        },
    ),
    "falcon-40b": (
        "FalconForCausalLM",
        {
            "num_hidden_layers": 60, "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8,
            "vocab_size": 65024, "multi_query": True, "parallel_attn": True, "new_decoder_architecture": True,
        },
    ),
    "mpt-7b": ("MPTForCausalLM", {"n_layers": 32, "d_model": 4096, "n_heads": 32, "vocab_size": 50432}),
    "bloom-560m": ("BloomForCausalLM", {"n_layer": 24, "n_embed": 1024, "n_head": 16, "vocab_size": 250880}),
    "bert-base": (
        "BertForMaskedLM",
        sizes(12, 768, 12, 3072, 30522, max_position_embeddings=512, type_vocab_size=2),
    ),
    "roberta-base": (
        "RobertaForMaskedLM",
        sizes(12, 768, 12, 3072, 50265, max_position_embeddings=514, type_vocab_size=1),
    ),
    "distilbert-base": (
        "DistilBertForMaskedLM",
        {
            "n_layers": 6, "dim": 768, "n_heads": 12, "hidden_dim": 3072, "vocab_size": 30522,
            "max_position_embeddings": 512,
        },
    ),
    "t5-small": (
        "T5ForConditionalGeneration",
        {
            "num_layers": 6, "num_decoder_layers": 6, "d_model": 512, "d_kv": 64, "d_ff": 2048,
            "num_heads": 8, "vocab_size": 32128, "relative_attention_num_buckets": 32,
        },
    ),
    "deepseek-v2-lite": (
        "DeepseekV2ForCausalLM",
        sizes(
            27, 2048, 16, 10944, 102400, **LATENT,
            q_lora_rank=None, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
            moe_intermediate_size=1408, first_k_dense_replace=1,
        ),
    ),
    "deepseek-v3": (
        "DeepseekV3ForCausalLM",
        sizes(
            61, 7168, 128, 18432, 129280, **LATENT,
            q_lora_rank=1536, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8,
            moe_intermediate_size=2048, first_k_dense_replace=3, num_nextn_predict_layers=1,
        ),
    ),
    "deepseek-v4-pro": (
        "DeepseekV4ForCausalLM",
        sizes(
            61, 7168, 128, None, 129280, **V4,
            q_lora_rank=1536, n_routed_experts=384, moe_intermediate_size=3072, o_groups=16, o_lora_rank=1024,
            index_topk=1024, compress_ratios=[128] + [128, 4] * 30,
        ),
    ),
    "gpt-oss-20b": (
        "GptOssForCausalLM",
        sizes(
            24, 2880, 64, 2880, 201088,
            num_key_value_heads=8, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
            sliding_window=128, attention_bias=True, layer_types=["sliding_attention", "full_attention"] * 12,
        ),
    ),
    "llama-4-maverick": (
        "Llama4ForConditionalGeneration",
        {
            "text_config": sizes(
                48, 5120, 40, 8192, 202048, num_local_experts=128, interleave_moe_layer_step=2, **LLAMA4
            ),
            "vision_config": {},
        },
    ),
    "qwen3.5-27b": (
        "Qwen3_5ForConditionalGeneration",
        {
            "text_config": sizes(
                64, 5120, 24, 17408, 248320, num_key_value_heads=4, head_dim=256, tie_word_embeddings=False,
                layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 16, **LINEAR,
            )
        },
    ),
    "smollm3-3b": (
        "SmolLM3ForCausalLM",
        sizes(36, 2048, 16, 11008, 128256, num_key_value_heads=4, tie_word_embeddings=True),
    ),
    "olmo-2-7b": ("Olmo2ForCausalLM", sizes(32, 4096, 32, 11008, 100352, attention_bias=False)),
}  # fmt: skip


def write(folder, config, name="config.json"):
    path = folder / name
    path.write_text(json.dumps(config))
    return path


def total(shape):
    return int(count_parameters(shape).total)


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations_give_the_catalogue_counts(tmp_path, name):
    architecture, config = CONFIGS[name]
    path = write(tmp_path, {"architectures": [architecture], **config})
    row = load_catalog().architectures[name]
    shape, expected = shape_from_huggingface(path), shape_from_spec(row, {})
    text = row.params_total - expected.other_weights
    assert total(shape) - shape.other_weights == text, "towers and heads stand beside the text"
    for field in ("moe_layers", "kv_heads", "tied_embeddings"):
        assert getattr(shape, field) == getattr(expected, field), field
    for field in ("window_layers", "full_layers", "linear_layers"):
        assert getattr(shape.attention_kind, field) == getattr(expected.attention_kind, field), field


def test_what_is_left_out_is_said(tmp_path):
    architecture, config = CONFIGS["gemma-3-4b"]
    shape = shape_from_huggingface(write(tmp_path, {"architectures": [architecture], **config}))
    assert shape.assumed == ("pictures and sound not counted: their towers' weights alone",)


def test_a_class_whose_weights_are_not_known_is_refused(tmp_path):
    sizes_alone = CONFIGS["llama-3-8b"][1]
    with pytest.raises(PlanError, match="NewForCausalLM: a class whose weights are not known"):
        shape_from_huggingface(write(tmp_path, {"architectures": ["NewForCausalLM"], **sizes_alone}))
    shape = shape_from_huggingface(write(tmp_path, sizes_alone))
    assert total(shape) == 8_030_261_248
    assert shape.assumed == ("a model without a class built like Llama",)


def test_a_network_that_no_text_has_is_asked_for_by_name(tmp_path):
    config = {"architectures": ["ConvNextModel"], "model_type": "convnext", "depths": [3, 3, 9, 3]}
    with pytest.raises(PlanError, match="name the network: convnext-tiny") as caught:
        shape_from_huggingface(write(tmp_path, config))
    assert "GGUF" not in caught.value.one_line()


@pytest.mark.parametrize("key", ["hidden_size_per_layer_input", "num_kv_shared_layers", "altup_num_inputs"])
def test_a_part_that_no_count_stands_for_is_refused(tmp_path, key):
    architecture, config = CONFIGS["llama-3-8b"]
    with pytest.raises(PlanError, match=key):
        shape_from_huggingface(write(tmp_path, {"architectures": [architecture], **config, key: 4}))


@pytest.mark.parametrize(
    ("extra", "weights"),
    [
        ({"torch_dtype": "bfloat16"}, "bf16"),
        ({"dtype": "float16"}, "fp16"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "awq-4"),
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}}, "nf4"),
        ({}, None),
    ],
)
def test_stored_precision(tmp_path, extra, weights):
    config = {"architectures": ["LlamaForCausalLM"], **CONFIGS["llama-3-8b"][1], **extra}
    assert read_model_file(write(tmp_path, config)).weights == weights


def test_an_index_gives_the_bytes_and_its_neighbour_the_shape(tmp_path):
    write(tmp_path, {"architectures": ["LlamaForCausalLM"], **CONFIGS["llama-3-8b"][1]})
    index = write(tmp_path, {"metadata": {"total_size": 16_060_522_496}}, "model.safetensors.index.json")
    model = read_model_file(index)
    assert (model.weight_bytes, total(model.shape)) == (16_060_522_496, 8_030_261_248)
    assert read_model_file(tmp_path).shape == model.shape


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"hidden_size": 64}', "num_hidden_layers: a size is missing"),
        ("[" * 100_000, "not JSON"),
        (json.dumps(sizes("many", 64, 4, 256, 1000)), "num_hidden_layers: not a number"),
        (json.dumps(sizes(-2, 64, 4, 256, 1000)), "num_hidden_layers: out of range"),
        (json.dumps(sizes(10**300, 64, 4, 256, 1000)), "num_hidden_layers: out of range"),
        (json.dumps(sizes(2, float("nan"), 4, 256, 1000)), "hidden_size: out of range"),
        (json.dumps(sizes(2, 64, 0, 256, 1000)), "heads: "),
        (json.dumps(sizes(2, 65, 4, 256, 1000)), "heads: the width does not divide"),
        (json.dumps(sizes(2, [], 4, 256, 1000)), "hidden_size: not a number"),
    ],
)
def test_malformed_configurations_name_file_and_key(tmp_path, text, says):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(PlanError) as caught:
        shape_from_huggingface(path)
    assert str(path) in caught.value.one_line()
    assert says in caught.value.one_line()


@pytest.mark.parametrize("total_size", [None, "big", -1, True, [], float("inf")])
def test_malformed_indexes(tmp_path, total_size):
    write(tmp_path, {"architectures": ["LlamaForCausalLM"], **CONFIGS["llama-3-8b"][1]})
    index = write(tmp_path, {"metadata": {"total_size": total_size}}, "model.safetensors.index.json")
    with pytest.raises(PlanError, match=r"metadata\.total_size"):
        read_model_file(index)


def test_files_that_are_not_there(tmp_path):
    for name in ("config.json", "model.gguf", "model.safetensors.index.json"):
        with pytest.raises(CapacityError, match=name):
            read_model_file(tmp_path / name)


KEYS = sorted({*CONFIGS["deepseek-v3"][1], "architectures", "text_config", "layer_types"})
NUMBERS = st.integers() | st.floats() | st.lists(st.integers(), max_size=3)


@given(config=st.dictionaries(st.sampled_from(KEYS), st.none() | st.booleans() | st.text() | NUMBERS))
def test_nonsense_configurations_are_refused_or_read_but_never_crash(tmp_path_factory, config):
    path = write(tmp_path_factory.getbasetemp(), {**CONFIGS["deepseek-v3"][1], **config}, "nonsense.json")
    try:
        count_parameters(read_model_file(path).shape)
    except CapacityError as error:
        assert "nonsense.json" in error.one_line()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.safetensors", b"\x10\0\0\0\0\0\0\0{}", "holds weights, not the sizes"),
        ("config.json", b"\xfe\xff\x00", "not JSON"),
        ("config.json", b"[" * 100_000, "not JSON"),
        ("config.json", b'{"a": ]', "not JSON"),
    ],
)
def test_files_that_describe_no_model_get_one_right_line(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(PlanError, match=said) as caught:
        read_model_file(path)
    assert "\n" not in caught.value.one_line()
    assert "make the folder" not in caught.value.one_line()


@pytest.mark.parametrize("name", ["absent.json", "~nosuchuser/config.json", "x" * 5000, "a\0b.json"])
def test_paths_that_lead_nowhere_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="cannot be read") as caught:
        read_model_file(name)
    assert "make the folder" not in caught.value.one_line()
