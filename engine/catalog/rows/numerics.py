"""Rows about numbers and what is done with them: precisions, optimizers and quantizations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from capacity_tui.engine.catalog.rows.base import CHECKS, IDENTIFIES, Row

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
    factored: bool = Field(False, description="keeps one row and one column of statistics for a matrix")
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
    """One figure that is assumed where nothing tells it, and named wherever it is used."""

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
    measurements: NonNegativeInt = Field(description="runs behind it; 0: set by hand")
    publishers: Annotated[NonNegativeInt, CHECKS] = Field(description="publishers of these runs")
