"""What a training run computes again, adapts and unpacks, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.numeric import Number


@dataclass(frozen=True, slots=True)
class Recompute:
    """What the backward pass computes again, as numbers from 0 to 1."""

    full_layers: Number = 0.0
    operations: Number = 0.0
    attention: Number = 0.0
    mlp: Number = 0.0
    experts: Number = 0.0
    router: Number = 0.0
    norm: Number = 0.0
    activation: Number = 0.0
    latent: Number = 0.0
