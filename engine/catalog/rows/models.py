"""Rows of models, of the numbers they compute with, and of the data they are trained on."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from capacity_tui.engine.catalog.rows.base import CHECKS, IDENTIFIES, SHOWN, Row
from capacity_tui.engine.catalog.shipped import counted


class Architecture(Row):
    """The shape of a model, as its published configuration gives it. Counts are exact, not rounded."""

    other_names: ClassVar[tuple[str, ...]] = ("hf_id",)

    like: Annotated[str | None, SHOWN] = Field(None, description="row that holds what this one does not give")
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
    config: dict[str, Any] = Field({}, description="its configuration, where columns alone do not give its shape")
    untrained: str = Field("", description="why it is not trained by itself")
    left_out: str = Field("", description="what is published with it and not counted")
    sees: bool = Field(False, description="reads pictures, which its configuration alone does not tell")
    by_count: bool = Field(False, description="its feed-forward is as wide as its count of parameters leaves")
    params_total: PositiveInt | None = None
    params_active: PositiveInt | None = Field(None, description="parameters one token uses, where that is not all")
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

    @model_validator(mode="before")
    @classmethod
    def _all_active(cls, row: Any) -> Any:
        return {"params_active": row.get("params_total"), **row} if isinstance(row, dict) else row

    @property
    def is_of_text(self) -> bool:
        """Whether it reads texts alone, as what is trained from the beginning on does."""
        return not self.sees and {"vision_config", "audio_config"}.isdisjoint(self.config)

    @property
    def is_of_sound(self) -> bool:
        """Whether it reads sound, always as much of it."""
        return "max_source_positions" in self.config

    @property
    def seconds_of_sound(self) -> float:
        """Seconds of sound that it reads at a time; 0 of a model that reads none."""
        positions = self.config.get("max_source_positions", 0)
        return float(str(positions)) / counted("sound-positions")


class ModelSize(Row):
    """A model of which nothing is known but the count of its parameters: a dense decoder of usual proportions."""

    parameter_count_billion: PositiveFloat
    description: Annotated[str, IDENTIFIES] = Field("", description="the range of counts it stands for")
    typical_use_cases: Annotated[tuple[str, ...], SHOWN] = ()
    examples: Annotated[tuple[str, ...], SHOWN] = Field((), description="models of about this size")


Layers = list[str | dict[str, Any]]


class Network(Row):
    """A network of layers over images, or over a wave of sound."""

    best_use: str = Field("", description="what the network is the right choice for")
    channels: PositiveInt = Field(3, description="of the input")
    image_size: PositiveInt = Field(224, description="height and width of the input")
    classes: PositiveInt = Field(1000, description="of the output")
    sample_rate: NonNegativeInt = Field(0, description="numbers a second of a wave that stands in place of an image")
    seconds: PositiveFloat = Field(10, description="of that wave, unless a plan says how many")
    is_sampled: bool = Field(False, description="an answer is many passes, each of which denoises a little")
    sampler_steps: PositiveInt = Field(25, description="of these passes, unless a plan says how many")
    guidance: PositiveInt = Field(2, description="passes of a step, 2 where the text guides it")
    layers: Layers = Field(description="in their order; see profiles/README.md")
    readers: dict[str, Layers] = Field({}, description="what reads the text of a picture before the passes, by name")
    decoder: Layers = Field([], description="what makes the picture of latents behind the passes")
    decoder_precision: str = Field("bf16", description="number type that it runs in, by default as what reads the text")

    @property
    def is_of_latents(self) -> bool:
        """Whether latents stand in place of the image, whose channels they are not, and no classes behind them."""
        return any(isinstance(layer, dict) and "latents" in layer for layer in self.layers)

    @property
    def is_of_sound(self) -> bool:
        """Whether it reads a wave of sound, of any length."""
        return self.sample_rate > 0

    @property
    def seconds_of_sound(self) -> float:
        """Seconds of a wave, where nobody says how long it is; 0 of a network over images."""
        return self.seconds if self.is_of_sound else 0.0


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
    open_range: tuple[PositiveFloat, PositiveFloat] | None = Field(
        None, description="the same where a plan leaves iterations to the data; as with them where it is not given"
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


PeakField = Literal["fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops"]


class Precision(Row):
    """A number format of training or inference, in bytes a number."""

    weight_bytes: PositiveFloat = Field(description="of the copy the forward pass reads")
    compute_bytes: Annotated[PositiveFloat, CHECKS] = Field(description="of an operand of a matrix product")
    activation_bytes: PositiveFloat = Field(description="of an activation kept for the backward pass")
    gradient_bytes: NonNegativeFloat = Field(description="of a gradient as it is produced")
    master_bytes: NonNegativeFloat = Field(description="of the optimizer's master copy, if separate")
    peak_field: PeakField = Field(description="the accelerator's field that holds its peak")
    trains: bool = Field(False, description="training may multiply matrices in it")
    gradients: bool = Field(False, description="gradients may be kept in it")
    master: bool = Field(False, description="master weights may be kept in it")
    runs_as: str | None = Field(None, description="precision that devices without it compute in instead")
    casts: bool = Field(False, description="operands of matrix products are cast to it from the wide type")
    wide: str = Field("bf16", description="precision of what is not multiplied in it, such as attention")
    loss_scaling: Annotated[bool, IDENTIFIES] = Field(False, description="gradients need scaling against underflow")
    min_compute_capability: Annotated[float | None, IDENTIFIES] = Field(
        None, description="NVIDIA, first version with matrix units"
    )
    amd_architectures: Annotated[tuple[str, ...], IDENTIFIES] = Field(
        (), description="AMD gfx names with matrix units for it"
    )
    other_hardware: Annotated[str | None, IDENTIFIES] = Field(
        None, description="other makers' devices that compute in it"
    )


class Optimizer(Row):
    """An optimizer, in bytes and operations per parameter."""

    states: Annotated[PositiveInt | Literal[0], CHECKS] = Field(description="full-size states")
    state_bytes: NonNegativeFloat = Field(description="states kept in fp32, or as the optimizer keeps them")
    state_bytes_bf16: NonNegativeFloat | None = Field(None, description="states kept in bf16")
    longer_side_bytes: NonNegativeFloat = Field(
        0.0, description="states of an element of the longer side of a matrix, for a rank, in place of whole ones"
    )
    shorter_side_bytes: NonNegativeFloat = Field(0.0, description="the same of the shorter side")
    rank: PositiveInt | None = Field(None, description="rank of its states of a matrix, where a plan gives no other")
    vector_state_bytes: NonNegativeFloat | None = Field(None, description="states of vectors, if different")
    matrices_only: bool = Field(False, description="embeddings, head, norms and biases use AdamW instead")
    state_traffic_bytes: NonNegativeFloat = Field(description="states read and written in one step")
    gradient_passes: PositiveInt = Field(1, description="times one step reads the gradient")
    fused: bool = Field(False, description="its kernels update a parameter in one pass, whatever the framework")
    flops_per_parameter: NonNegativeFloat = Field(description="element-wise operations of one step")
    eight_bit: str | None = Field(None, description="the same optimizer with states of 8 bits")
    newton_schulz_steps: PositiveInt | None = Field(None, description="orthogonalization steps for a matrix")


class Quantization(Row):
    """A storage format of weights: bits a weight, scales and mixtures included."""

    family: str = Field("plain", description="formats that the same kernels read")
    own_type: bool = Field(False, description="matrices are multiplied in the type of its `compute`, not in 16 bits")
    bits_per_weight: PositiveFloat | None = Field(None, description="average over a whole model of 8B")
    body_bits: PositiveFloat | None = Field(None, description="of the layers' matrices")
    embedding_bits: PositiveFloat | None = Field(None, description="of the token embedding")
    output_bits: PositiveFloat | None = Field(None, description="of the output head, or of tied embeddings")
    base_bits: PositiveFloat | None = Field(None, description="of the block format that most matrices have")
    block: Annotated[str | None, IDENTIFIES] = Field(None, description="how a block is built")
    block_size: Annotated[PositiveInt | None, IDENTIFIES] = Field(None, description="weights that share a scale")
    mixture: Annotated[str | None, IDENTIFIES] = Field(None, description="which matrices get another format")
    compute: str = Field("bf16", description="precision of the matrix product after dequantization")
    unpacked_bytes: NonNegativeFloat = Field(
        2.0, description="bytes moved to unpack a weight in training, beside reading it packed"
    )
    unpack_flops: NonNegativeFloat = Field(8.0, description="operations that unpack one weight in training")
    unpack_launches: NonNegativeFloat = Field(1.0, description="kernels that unpack one matrix in training")
    offered: bool = Field(False, description="lists of weight formats offer it")
    base: bool = Field(False, description="a usual format of the frozen base below adapters")
    min_compute_capability: float | None = Field(None, description="NVIDIA, first version its kernels are built for")
    engines: tuple[str, ...] = Field((), description="inference engines that read it")
    kv_cache: bool = Field(False, description="also a format of the key-value cache")


class Checkpointing(Row):
    """What the backward pass computes again instead of keeping it."""

    full_layers: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="share of layers that keep their input alone"
    )
    operations: bool = Field(False, description="matrix products are kept, all else is computed again")
    modules: tuple[str, ...] = Field((), description="parts of the other layers that are computed again")


class Assumption(Row):
    """One figure that is assumed where it is unknown, and named wherever it is used."""

    value: PositiveFloat
    unit: str = Field("", description="unit of the value, empty for a pure number")
    low: PositiveFloat | None = Field(None, description="least that devices of the kind have; None where all have it")
    high: PositiveFloat | None = Field(None, description="most that they have, likewise")


class Reliability(Row):
    """Spread of measured over estimated, of one kind of figure, on runs of publishers an estimate was not fitted to.

    Spreads are standard deviations of the logarithm of measured over estimated.
    """

    spreads: dict[str, NonNegativeFloat] = Field(
        description="spread by what brings it in: of a whole figure made of that part alone"
    )
    distances: dict[str, NonNegativeFloat] = Field(
        description="spread that one difference from the nearest published run adds"
    )
    hidden: NonNegativeFloat = Field(0.0, description="share of hidden communication that counts with the exposed")
    repeat: NonNegativeFloat = Field(
        description="spread between runs of one plan: nothing measured here narrows it more"
    )
    below: PositiveFloat = Field(description="spreads from the estimate to the low end of a range of eight in ten")
    above: PositiveFloat = Field(description="spreads to its high end")
    kinds: dict[str, tuple[PositiveFloat, PositiveFloat]] = Field(
        default_factory=dict, description="below and above of one kind of runs, where several publishers measured it"
    )
    least: dict[str, tuple[PositiveFloat, PositiveFloat]] = Field(
        default_factory=dict, description="measured over estimated that a range holds at least, by the way of counting"
    )
    most: tuple[PositiveFloat, PositiveFloat] | None = Field(
        None, description="measured over estimated that a range reaches at most; None for no bound"
    )
    measurements: NonNegativeInt = Field(description="runs behind it; 0: set by hand")
    publishers: Annotated[NonNegativeInt, CHECKS] = Field(description="publishers of these runs")

    def least_of(self, count: str, kind: str) -> tuple[float, float] | None:
        """Return what a range of memory holds at least, by the way of counting and kind of run; None for nothing."""
        return self.least.get(f"{kind}-{count}", self.least.get(count))


Holds = Literal["tokens", "images", "features"]  # What one unit of a training's data is
DataSource = Literal["local", "network", "bucket", "streaming"]
"""Where a plan says that its data are: on the node's disk, on shared files, as objects, with whoever publishes them."""

CacheName = Literal["ram", "nvme", "disk"]


class DataFormat(Row):
    """A form in which the data of a training are stored."""

    holds: tuple[Holds, ...] = Field(min_length=1, description="kinds of data it is for; the first such row is usual")
    bytes_per_token: PositiveFloat | None = Field(None, description="stored bytes; none for numbers of tokens")
    bytes_per_sample: PositiveFloat | None = Field(None, description="stored bytes of one sample")
    bytes_per_number: PositiveFloat | None = Field(None, description="stored bytes of each number of a sample")
    decoded_mb_per_core: PositiveFloat | None = Field(
        None, description="MB as stored that one processor core makes ready in a second; none needs no work"
    )
    made_from: str | None = Field(None, description="format that it is made from before the training begins")
    any_order: bool = Field(description="samples are read in any order, not only one shard after another")

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if sum(size is not None for size in (self.bytes_per_token, self.bytes_per_sample, self.bytes_per_number)) > 1:
            raise ValueError("give one of bytes_per_token, bytes_per_sample and bytes_per_number")
        return self


class StorageTier(Row):
    """Something that data are read from, and what one node reads and writes there."""

    place: DataSource | None = Field(None, description="what a plan calls it as a source; none for main memory")
    cache: CacheName | None = Field(None, description="what a plan calls it as a cache")
    disk_kind: str | None = Field(None, description="kind of disk that detection finds")
    read_gbs: PositiveFloat = Field(description="GB/s that a node reads in order")
    any_order_gbs: PositiveFloat = Field(description="GB/s that a node reads in any order, sample by sample")
    write_gbs: PositiveFloat | None = Field(None, description="GB/s that a node writes; none where nothing is written")


class CheckpointFiles(Row):
    """The form of the checkpoints of one kind of software."""

    names: tuple[str, ...] = Field(description="globs of a checkpoint's folder or file")
    holds: tuple[str, ...] = Field((), description="globs of which each must be found in its folder")
    newest: str | None = Field(None, description="file beside it that names the newest complete one")
    unfinished: tuple[str, ...] = Field((), description="globs of what lies beside it while it is written")
    sibling: str | None = Field(None, description="file beside it without which it is of other software")
    last: str | None = Field(None, description="file beside it that is written when all of it is")
