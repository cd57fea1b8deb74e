"""Bytes that training keeps for one parameter, by precision, optimizer and framework."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import Framework, Optimizer
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.models.transformer import Matrix
from capacity_tui.engine.numeric import Number, present
from capacity_tui.engine.plan.sections import NO_MASTER, TrainingSection
from capacity_tui.engine.units import FP32_BYTES

# Memory traffic of an optimizer that runs one kernel for each operation, over that of one kernel for all.
SEPARATE_PASSES = counted("separate-optimizer-passes")


@dataclass(frozen=True, slots=True)
class Numerics:
    """Bytes of numbers in a training run.

    Attributes:
        element_bytes: an activation.
        weight_bytes: a parameter, between uses.
        master_bytes: its fp32 copy, 0 if none.
        gradient_bytes: a gradient as kept.
        state_bytes: the optimizer's states of a parameter of a matrix.
        factor_bytes: its statistics of a row or a column of a matrix, where it keeps no others.
        vector_state_bytes: its states of a parameter of a norm or bias.
        outer_state_bytes: its states of a parameter of embedding or head.
        temporary_bytes: what separate operations of the optimizer write aside for a parameter.
        optimizer_traffic: what the optimizer reads and writes for a parameter in a step.
        outer_traffic: the same of embedding and head.
        optimizer_flops: its element-wise operations for a parameter in a step.
        newton_schulz_steps: iterations that orthogonalize the update of a matrix, 0 without.
    """

    element_bytes: float
    weight_bytes: float
    master_bytes: float
    gradient_bytes: float
    state_bytes: float
    factor_bytes: float
    vector_state_bytes: float
    outer_state_bytes: float
    temporary_bytes: float
    optimizer_traffic: float
    outer_traffic: float
    optimizer_flops: float
    newton_schulz_steps: float


def training_numerics(training: TrainingSection, row: Framework, catalog: Catalog) -> Numerics:
    """Return the bytes of a training section whose fields are settled.

    Raises:
        CatalogError: an optimizer or a number format nobody knows.
    """
    optimizer = catalog.optimizers.find(training.optimizer)
    kept = catalog.precisions.find(training.precision)
    full = kept.master_bytes == 0.0
    element_bytes = kept.activation_bytes
    mixed = training.master_weights != NO_MASTER and not full
    weight_bytes = kept.master_bytes if mixed and row.fp32_parameters else kept.weight_bytes
    master_bytes = kept.master_bytes if mixed and not row.fp32_parameters else 0.0
    gradients = training.gradients or (kept.wide if full else row.gradients)
    if training.master_weights == NO_MASTER and training.gradients is None and not full:
        gradients = kept.wide
    gradient_bytes = catalog.precisions.find(gradients).gradient_bytes
    lean = weight_bytes + master_bytes < FP32_BYTES
    each, vector = _state_bytes(optimizer, lean=lean), _vector_state_bytes(optimizer, lean=lean)
    values = 2.0 * (master_bytes or weight_bytes) + (element_bytes if master_bytes else 0.0)
    narrowed = each / optimizer.state_bytes if optimizer.state_bytes else 1.0
    traffic = narrowed * optimizer.state_traffic_bytes + values + optimizer.gradient_passes * gradient_bytes
    in_one = optimizer.fused or row.fused_optimizer > 0
    passes = 1.0 if in_one else SEPARATE_PASSES
    return Numerics(
        element_bytes=element_bytes,
        weight_bytes=weight_bytes,
        master_bytes=master_bytes,
        gradient_bytes=gradient_bytes,
        state_bytes=each,
        factor_bytes=vector if optimizer.factored else 0.0,
        vector_state_bytes=vector,
        outer_state_bytes=vector if optimizer.matrices_only else each,
        # Each operation runs over all parameters: the root of the second moment is as large as the moment itself.
        temporary_bytes=0.0 if in_one or not optimizer.states else each / optimizer.states,
        optimizer_traffic=passes * traffic,
        # States are read and written, gradients read once.
        outer_traffic=passes * (2.0 * vector + values + gradient_bytes if optimizer.matrices_only else traffic),
        optimizer_flops=optimizer.flops_per_parameter,
        newton_schulz_steps=float(optimizer.newton_schulz_steps or 0),
    )


def _state_bytes(optimizer: Optimizer, *, lean: bool) -> float:
    """Bytes of optimizer state for a parameter; states follow the parameters' type where nothing is fp32."""
    if lean and optimizer.state_bytes_bf16 is not None:
        return optimizer.state_bytes_bf16
    return optimizer.state_bytes


def _vector_state_bytes(optimizer: Optimizer, *, lean: bool) -> float:
    """Bytes of optimizer state for a parameter of a vector; halved with those of matrices."""
    each = _state_bytes(optimizer, lean=lean)
    if optimizer.vector_state_bytes is None:
        return each
    return optimizer.vector_state_bytes * (each / optimizer.state_bytes if optimizer.state_bytes else 1.0)


@equation(
    "mean = (state · matrices + factor · edges + vector · (every - matrices)) / every",
    unit="B",
    source="optimizers.yaml; matrices, their rows and columns, and vectors of the mean layer",
    units={"state": "B", "factor": "B", "vector": "B"},
)
def mean_states(
    state: Number, matrices: Number, factor: Number, edges: Number, vector: Number, every: Number
) -> Number:
    """Bytes of optimizer state for a parameter, the mean over matrices and vectors.

    Args:
        state: bytes for a parameter of a matrix.
        matrices: parameters in matrices.
        factor: bytes for a row or a column of a matrix.
        edges: rows and columns of all matrices.
        vector: bytes for a parameter of a vector.
        every: parameters in matrices and vectors.
    """
    return (state * matrices + factor * edges + vector * (every - matrices)) / every


def mean_state_bytes(numerics: Numerics, matrices: Iterable[Matrix], parameters: Number) -> Number:
    """Return the bytes of optimizer state for each of so many parameters, most of them in some matrices."""
    weights: Number = 0.0
    edges: Number = 0.0
    for matrix in matrices:
        weights = weights + matrix.number * matrix.rows * matrix.columns
        edges = edges + matrix.number * (matrix.rows + matrix.columns) * present(matrix.columns)
    inside = np.minimum(weights, parameters)
    return mean_states(
        numerics.state_bytes, inside, numerics.factor_bytes, edges, numerics.vector_state_bytes, parameters
    )
