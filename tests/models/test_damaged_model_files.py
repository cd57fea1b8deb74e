"""Whatever a model's file holds, it is read, or refused in one line."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.models import read_model_file
from capacity_tui.engine.models.transformer.shape import load_file_names
from capacity_tui.engine.printable import printable

SOUND = {
    "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "vocab_size": 1000, "intermediate_size": 128,
}  # fmt: skip
LATENT = {"architectures": ["DeepseekV3ForCausalLM"], "kv_lora_rank": 512, "q_lora_rank": 1536}
HEADER = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.attention.head_count": 4, "llama.feed_forward_length": 128, "llama.vocab_size": 1000,
}  # fmt: skip
odd = st.sampled_from(
    [None, True, -1, 0, 1, 3, 2**31, 2**62, 10**30, 0.5, 1e300, float("nan"), "", "64", "x" * 5000, [], [1, "a"], {},
     {"type": "linear", "factor": "many"}, [[]], "\x1b[31m"]
)  # fmt: skip
_KNOWN = {key for keys in load_file_names().config_keys.values() for key in keys}
_OTHERS = {"architectures", "model_type", "torch_dtype", "quantization_config", "text_config", "layer_types"}
config_keys = st.sampled_from(sorted(_KNOWN | _OTHERS))
gguf_keys = st.sampled_from(
    [*HEADER, *(key.replace("{arch}", "llama") for keys in load_file_names().gguf_keys.values() for key in keys),
     "general.file_type", "llama.rope.dimension_count", "llama.attention.kv_lora_rank", "tokenizer.ggml.tokens"]
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def read(path: Path) -> str:
    """What is said against a file in one line; nothing of one that is read."""
    try:
        read_model_file(path)
    except CapacityError as error:
        line = error.one_line()
        assert printable(line) == line
        assert len(line) < 1000 + len(str(path))
        return line
    return ""


def value(of: object) -> bytes:
    """A GGUF value with its kind."""
    if isinstance(of, bool):
        return struct.pack("<I?", 7, of)
    if isinstance(of, int):
        return struct.pack("<Iq", 11, of) if -(2**63) <= of < 2**63 else struct.pack("<Id", 12, float(of))
    if isinstance(of, float):
        return struct.pack("<Id", 12, of)
    if isinstance(of, list):
        return struct.pack("<IIQ", 9, 11, len(of)) + b"".join(struct.pack("<q", 1) for _ in of)
    text = str(of).encode()
    return struct.pack("<IQ", 8, len(text)) + text


def gguf(metadata: dict[str, object], tensors: bytes = b"", count: int = 0) -> bytes:
    entries = b"".join(struct.pack("<Q", len(key)) + key.encode() + value(of) for key, of in metadata.items())
    return b"GGUF" + struct.pack("<IQQ", 3, count, len(metadata)) + entries + tensors


@given(st.sampled_from([SOUND, {**SOUND, **LATENT}]), st.dictionaries(config_keys, odd, max_size=4))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_configuration(folder: Path, sound: dict[str, object], damage: dict[str, object]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**sound, **damage}))
    read(path)


@given(st.dictionaries(gguf_keys, odd, max_size=4), st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_header(folder: Path, damage: dict[str, object], at: int, byte: int) -> None:
    path = folder / "model.gguf"
    content = gguf({**HEADER, **damage})
    path.write_bytes(content)
    read(path)
    path.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
    read(path)
    path.write_bytes(content[: min(at, len(content) - 1)])
    assert read(path)


@pytest.mark.parametrize(
    "damage",
    [{"general.file_type": [1, 2]}, {"llama.rope.dimension_count": "many"}, {"llama.attention.kv_lora_rank": 512},
     {"llama.vocab_size": 2**62}, {"llama.block_count": "two"}, {"general.architecture": ["llama"]}],
)  # fmt: skip
def test_known_damage_of_headers(folder: Path, damage: dict[str, object]) -> None:
    path = folder / "known.gguf"
    path.write_bytes(gguf({**HEADER, **damage}))
    read(path)


@pytest.mark.parametrize("name", ["a" * 4097, "a" * 300 + ".gguf", "~nosuchuser/x", "~nosuchuser/x.gguf", "a\0b"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(CapacityError):
        read_model_file(name)


@pytest.mark.parametrize("length", [2**16 + 1, 2**63])
def test_a_tensor_name_of_endless_length_is_refused(folder: Path, length: int) -> None:
    path = folder / "long.gguf"
    path.write_bytes(gguf(HEADER, struct.pack("<Q", length) + b"a" * 100, 1))
    assert "out of range" in read(path)
