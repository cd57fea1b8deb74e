"""Writes a Llama with random weights in GGUF (version 3), as llama.cpp reads it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

ALIGNMENT = 32
TEXT, NUMBER, REAL, LIST = 8, 4, 6, 9
F32, F16 = 0, 1
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def write_llama(path: Path, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, context: int):
    """Write a model whose matrices have 16 bits; tokens are bytes, and names without a meaning."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    words += [f"t{number}" for number in range(len(words), vocab)]
    kinds += [NORMAL] * (vocab - len(kinds))
    sizes = {
        "block_count": layers, "context_length": context, "embedding_length": hidden, "feed_forward_length": ffn,
        "attention.head_count": heads, "attention.head_count_kv": kv_heads, "vocab_size": vocab,
        "rope.dimension_count": hidden // heads,
    }  # fmt: skip
    fields = [
        _field("general.architecture", TEXT, _text("llama")),
        *(_field(f"llama.{name}", NUMBER, struct.pack("<I", size)) for name, size in sizes.items()),
        _field("llama.attention.layer_norm_rms_epsilon", REAL, struct.pack("<f", 1e-5)),
        _field("general.file_type", NUMBER, struct.pack("<I", F16)),
        _field("tokenizer.ggml.model", TEXT, _text("llama")),
        _field("tokenizer.ggml.tokens", LIST, struct.pack("<IQ", TEXT, vocab) + b"".join(map(_text, words))),
        _field("tokenizer.ggml.scores", LIST, struct.pack("<IQ", REAL, vocab) + np.zeros(vocab, "<f4").tobytes()),
        _field("tokenizer.ggml.token_type", LIST, struct.pack("<IQ", 5, vocab) + np.array(kinds, "<i4").tobytes()),
        *(
            _field(f"tokenizer.ggml.{name}_token_id", NUMBER, struct.pack("<I", number))
            for number, name in enumerate(("unknown", "bos", "eos"))
        ),
    ]
    narrow = hidden // heads * kv_heads
    shapes = {"token_embd": (hidden, vocab), "output_norm": (hidden,), "output": (hidden, vocab)}
    for layer in range(layers):
        matrices = {
            "attn_norm": (hidden,), "attn_q": (hidden, hidden), "attn_k": (hidden, narrow), "attn_v": (hidden, narrow),
            "attn_output": (hidden, hidden), "ffn_norm": (hidden,), "ffn_gate": (hidden, ffn), "ffn_up": (hidden, ffn),
            "ffn_down": (ffn, hidden),
        }  # fmt: skip
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in matrices.items()}
    random, described, data, offset = np.random.default_rng(0), [], [], 0
    for name, shape in shapes.items():
        is_norm = len(shape) == 1
        values = np.ones(shape, "<f4") if is_norm else (random.standard_normal(shape, "f4") * 0.02).astype("<f2")
        described.append(
            _text(f"{name}.weight")
            + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
            + struct.pack("<IQ", F32 if is_norm else F16, offset)
        )
        data.append(values.tobytes() + bytes(-values.nbytes % ALIGNMENT))
        offset += len(data[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(described), len(fields)) + b"".join(fields) + b"".join(described)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + b"".join(data))


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _field(key: str, kind: int, payload: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + payload
