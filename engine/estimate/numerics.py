"""Bytes that training keeps for one parameter, by precision, optimizer and framework."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.numerics import Optimizer
from capacity_tui.engine.catalog.software import Framework
from capacity_tui.engine.workload.training_section import TrainingSection


@dataclass(frozen=True, slots=True)
class Numerics:
    """Bytes of numbers in a training run.

    Attributes:
        width: an activation.
        weight_bytes: a parameter, between uses.
        master_bytes: its fp32 copy, 0 if none.
        gradient_bytes: a gradient as kept.
        state_bytes: the optimizer's states of a parameter.
        optimizer_traffic: what the optimizer reads and writes for a parameter in a step.
    """

    width: float
    weight_bytes: float
    master_bytes: float
    gradient_bytes: float
    state_bytes: float
    optimizer_traffic: float


def training_numerics(training: TrainingSection, row: Framework, catalog: Catalog) -> Numerics:
    """Return the bytes of a training section whose fields are settled.

    Raises:
        CatalogError: an optimizer or a number format nobody knows.
    """
    optimizer = catalog.optimizers.find(training.optimizer)
    kept = catalog.precisions.find(training.precision)
    full = kept.master_bytes == 0.0
    width = kept.activation_bytes
    mixed = training.master_weights == "fp32" and not full
    weight_bytes = kept.master_bytes if mixed and row.fp32_parameters else kept.weight_bytes
    master_bytes = kept.master_bytes if mixed and not row.fp32_parameters else 0.0
    gradients = training.gradients or ("fp32" if full else row.gradients)
    if training.master_weights == "none" and training.gradients is None and not full:
        gradients = "bf16"
    gradient_bytes = catalog.precisions.find(gradients).gradient_bytes
    return Numerics(
        width=width,
        weight_bytes=weight_bytes,
        master_bytes=master_bytes,
        gradient_bytes=gradient_bytes,
        state_bytes=_state_bytes(optimizer, lean=weight_bytes + master_bytes < 4.0),
        optimizer_traffic=optimizer.state_traffic_bytes
        + 2.0 * (master_bytes or weight_bytes)
        + optimizer.gradient_passes * gradient_bytes
        + (width if master_bytes else 0.0),
    )


def _state_bytes(optimizer: Optimizer, *, lean: bool) -> float:
    """Bytes of optimizer state for a parameter; states follow the parameters' type where nothing is fp32."""
    if lean and optimizer.state_bytes_bf16 is not None:
        return optimizer.state_bytes_bf16
    return optimizer.state_bytes
