"""Model files in GGUF: what they give, and damaged ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.models import read_model_file
from capacity_tui.engine.models.transformer import count_parameters


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key, kind, payload):
    return text(key) + struct.pack("<I", kind) + payload


def number(key, value):
    return entry(key, 4, struct.pack("<I", value))


def strings(key, values):
    return entry(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(text, values)))


def tensor(name, dimensions, kind):
    shape = struct.pack(f"<{len(dimensions)}Q", *dimensions)
    return text(name) + struct.pack("<I", len(dimensions)) + shape + struct.pack("<IQ", kind, 0)


def gguf(architecture, numbers, tensors, vocab=5000):
    entries = [
        entry("general.architecture", 8, text(architecture)),
        number("general.file_type", 15),
        strings("tokenizer.ggml.tokens", [f"t{n}" for n in range(vocab)]),
        entry("tokenizer.ggml.scores", 9, struct.pack("<IQ", 6, vocab) + b"\0" * 4 * vocab),
        *(number(f"{architecture}.{key}", value) for key, value in numbers.items()),
    ]
    described = [tensor(*one) for one in tensors]
    counts = struct.pack("<IQQ", 3, len(described), len(entries))
    return b"GGUF" + counts + b"".join(entries) + b"".join(described)


SMALL = {
    "block_count": 2, "embedding_length": 256, "feed_forward_length": 512, "attention.head_count": 4,
    "attention.head_count_kv": 2, "context_length": 2048,
}  # fmt: skip
TENSORS = [("token_embd.weight", (256, 5000), 14), ("blk.0.ffn_up.weight", (256, 512), 12), ("n", (256,), 0)]


def test_gguf_gives_shape_quantization_and_exact_bytes(tmp_path):
    path = tmp_path / "small.gguf"
    path.write_bytes(gguf("llama", SMALL, TENSORS))
    model = read_model_file(path)
    shape = model.shape
    assert (shape.layers, shape.hidden, shape.kv_heads, shape.head_dim, shape.vocab) == (2, 256, 2, 64, 5000)
    assert shape.tied_embeddings and shape.architecture == "LlamaForCausalLM"
    assert model.weights == "q4_k_m"
    assert model.parameters == 256 * 5000 + 256 * 512 + 256
    assert model.weight_bytes == 5000 * 210 + 512 * 144 + 1024


def test_gguf_of_a_whole_model_counts_as_the_catalogue_does(tmp_path):
    numbers = {
        "block_count": 61, "embedding_length": 7168, "feed_forward_length": 18432,
        "attention.head_count": 128, "attention.head_count_kv": 1, "attention.key_length": 576,
        "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128,
        "attention.q_lora_rank": 1536, "attention.kv_lora_rank": 512, "rope.dimension_count": 64,
        "expert_count": 256, "expert_used_count": 8, "expert_shared_count": 1,
        "expert_feed_forward_length": 2048, "leading_dense_block_count": 3,
    }  # fmt: skip
    path = tmp_path / "deepseek.gguf"
    path.write_bytes(gguf("deepseek2", numbers, [("output.weight", (7168, 129280), 14)], vocab=129_280))
    assert (
        count_parameters(read_model_file(path).shape).total == load_catalog().architectures["deepseek-v3"].params_total
    )


def test_gguf_with_an_unknown_architecture_says_what_it_assumes(tmp_path):
    path = tmp_path / "new.gguf"
    path.write_bytes(gguf("brandnew", SMALL, TENSORS))
    assert read_model_file(path).shape.assumed == ("brandnew built like Llama",)


def test_texts_of_a_gguf_do_nothing_to_the_terminal(tmp_path):
    path = tmp_path / "new.gguf"
    path.write_bytes(gguf("\x1b]0;PWNED\x07new", SMALL, TENSORS))
    assert read_model_file(path).shape.assumed == (r"\x1b]0;PWNED\x07new built like Llama",)


def test_gguf_without_a_size_names_the_key(tmp_path):
    path = tmp_path / "small.gguf"
    path.write_bytes(gguf("llama", {key: value for key, value in SMALL.items() if key != "block_count"}, TENSORS))
    with pytest.raises(PlanError, match=r"small\.gguf: llama\.block_count"):
        read_model_file(path)


@pytest.mark.parametrize("content", [b"", b"GGML", b"GGUF" + struct.pack("<IQQ", 9, 0, 0), b"GGUF\3\0\0\0"])
def test_files_that_are_not_gguf(tmp_path, content):
    path = tmp_path / "small.gguf"
    path.write_bytes(content)
    with pytest.raises(PlanError, match=r"small\.gguf"):
        read_model_file(path)


WHOLE = gguf("llama", SMALL, TENSORS, vocab=20)


@given(data=st.data())
def test_damaged_gguf_is_refused_or_read_but_never_crashes(tmp_path_factory, data):
    damaged = bytearray(WHOLE)
    for place in data.draw(st.lists(st.integers(4, len(WHOLE) - 1), max_size=4)):
        damaged[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(damaged[: data.draw(st.integers(0, len(WHOLE)))])
    try:
        read_model_file(path)
    except CapacityError as error:
        assert "damaged.gguf" in error.one_line()


def test_gguf_with_values_of_other_kinds(tmp_path):
    path = tmp_path / "odd.gguf"
    for numbers in (
        {**SMALL, "attention.kv_lora_rank": 512},
        {**SMALL, "attention.kv_lora_rank": 512, "rope.dimension_count": 10**6},
    ):
        path.write_bytes(gguf("deepseek2", numbers, TENSORS))
        with pytest.raises(PlanError, match="key_length"):
            read_model_file(path)


def text_array(key, count):
    """One metadata entry: an array of that many empty texts."""
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<IIQ", 9, 8, count) + b"\0" * (8 * count)


def test_gguf_headers_are_bounded_in_texts_and_bytes(tmp_path):
    path = tmp_path / "long.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 3)
    path.write_bytes(head + b"".join(text_array(f"k{number}", 900_000) for number in range(3)))
    with pytest.raises(PlanError, match="too many texts"):
        read_model_file(path)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q1sIIQ", 1, b"k", 9, 10, 2_000_000))
        file.truncate(2**31)
    with pytest.raises(PlanError):
        read_model_file(path)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q1sIQ", 1, b"k", 8, 64 * 2**20))
        file.truncate(2**31)
    with pytest.raises(PlanError, match="out of range"):
        read_model_file(path)
