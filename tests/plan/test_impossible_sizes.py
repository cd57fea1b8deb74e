"""Sizes with which no transformer can be computed are refused with their place and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.models import read_model_file
from capacity_tui.engine.models.transformer import shape_from_spec

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
