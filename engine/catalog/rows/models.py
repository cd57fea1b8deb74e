"""Rows of models: shapes of transformers, layers of networks, costs of classical algorithms, laws of training."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

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


class Network(Row):
    """A network of layers over images."""

    best_use: str = Field("", description="what the network is the right choice for")
    channels: PositiveInt = Field(3, description="of the input")
    image_size: PositiveInt = Field(224, description="height and width of the input")
    classes: PositiveInt = Field(1000, description="of the output")
    is_sampled: bool = Field(False, description="an answer is many passes, each of which denoises a little")
    layers: list[str | dict[str, Any]] = Field(description="in their order; see profiles/README.md")


Ratio = Annotated[float, Field(gt=0, le=10)]


class Algorithm(Row):
    """One algorithm as a library runs it; times are those of one core of the machine that ``source`` names."""

    library: str = Field(description="implementation the constants were measured on")
    complexity: str = Field(description="complexity class in rows n, features p and the algorithm's own sizes")
    best_use: str = Field("", description="what the algorithm is the right choice for")
    single_threaded: bool = Field(False, description="the library uses one core, whatever n_jobs says")
    serial: float = Field(0.0, ge=0, le=1, description="share of one core's time that more cores do not shorten")
    shares: dict[str, Ratio] = Field({}, description="share of the matrix-product rate, by kernel")
    half_sizes: dict[str, NonNegativeFloat] = Field(
        {}, description="smaller side of the result at which a kernel reaches half its rate"
    )
    nanoseconds: dict[str, NonNegativeFloat] = Field({}, description="of one elementary operation, by kind")
    passes: dict[str, NonNegativeFloat] = Field({}, description="times a kernel reads or writes its operands")
    bytes: dict[str, NonNegativeFloat] = Field({}, description="kept for one element, by kind")
    ratios: dict[str, NonNegativeFloat] = Field({}, description="sizes that follow from others, by name")
    seconds: NonNegativeFloat = Field(0.0, description="fixed time of a fit: checks and set-up")
    step_range: tuple[PositiveFloat, PositiveFloat] = Field(
        (0.6, 2.0), description="measured over predicted time, 10th and 90th percentile"
    )
    reasonable_seconds: PositiveFloat = Field(3600.0, description="a fit that takes longer earns a warning")
    instead: str = Field("", description="what to use beyond that")


class ScalingLaw(Row):
    """Loss in nats a token over parameters and tokens of training."""

    irreducible: PositiveFloat
    size_factor: PositiveFloat
    size_power: PositiveFloat
    data_factor: PositiveFloat
    data_power: PositiveFloat
