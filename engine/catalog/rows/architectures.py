"""Rows about models: the shape of an architecture and its parameter counts."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from capacity_tui.engine.catalog.rows.base import CHECKS, IDENTIFIES, Row


class Architecture(Row):
    """The shape of a model, as its published configuration gives it. Counts are exact, not rounded."""

    other_names: ClassVar[tuple[str, ...]] = ("hf_id",)

    family: str
    kind: Literal["decoder", "encoder", "encoder-decoder", "vit", "cnn"]
    released: Annotated[str | None, IDENTIFIES] = None
    hf_id: str | None = Field(None, description="name on the model hub")
    architecture: str | None = Field(None, description="class name in its configuration")
    layers: PositiveInt
    hidden: PositiveInt
    heads: PositiveInt | None = None
    kv_heads: PositiveInt | None = None
    head_dim: PositiveInt | None = None
    ffn: PositiveInt | None = Field(None, description="width of the dense feed-forward part")
    gated: bool | None = Field(None, description="feed-forward with a gate: three matrices, not two")
    norm: Literal["RMSNorm", "LayerNorm", "BatchNorm"] | None = None
    vocab: PositiveInt | None = None
    tied_embeddings: bool | None = None
    max_context: PositiveInt | None = Field(None, description="tokens")
    attention: str | None = Field(None, description="MHA, GQA, MQA, MLA or a description")
    sliding_window: PositiveInt | None = Field(None, description="tokens")
    window_pattern: Annotated[str | None, IDENTIFIES] = None
    biases: Annotated[str | None, IDENTIFIES] = Field(
        None, description="which matrices have biases: none, all, qkv ..."
    )
    q_lora_rank: PositiveInt | None = None
    kv_lora_rank: PositiveInt | None = None
    qk_nope_head_dim: PositiveInt | None = None
    qk_rope_head_dim: PositiveInt | None = None
    v_head_dim: PositiveInt | None = None
    experts: PositiveInt | None = None
    experts_active: PositiveInt | None = Field(None, description="routed experts a token visits")
    experts_shared: NonNegativeInt | None = None
    moe_ffn: PositiveInt | None = Field(None, description="width of one expert")
    first_dense_layers: NonNegativeInt | None = None
    by_count: bool = Field(False, description="its feed-forward is as wide as its count of parameters leaves")
    params_total: PositiveInt | None = None
    params_active: PositiveInt | None = Field(None, description="parameters one token uses")
    params_embedding: Annotated[NonNegativeInt | None, CHECKS] = None
    params_published: Annotated[PositiveInt | None, CHECKS] = None
    published_matches: Annotated[str | None, CHECKS] = Field(
        None, description="exact, or how far counted and published differ"
    )
    published_source: Annotated[str | None, CHECKS] = None
    weights: str | None = Field(None, description="format of the published weights, where that is not 16 bits")
    weight_bytes: PositiveInt | None = Field(
        None, description="of the published weights, where the format's bits alone do not give them"
    )
    kv_elems_per_token: Annotated[PositiveInt | None, CHECKS] = Field(
        None, description="cached numbers a token, all layers"
    )
