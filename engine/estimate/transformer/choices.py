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


@dataclass(frozen=True, slots=True)
class AdapterInputs:
    """Copies that adapters keep of the inputs of a layer's matrices, where nothing else keeps them.

    Attributes:
        attention: of the input of queries, keys and values.
        output: of the attention's output.
        up: of the feed-forward's input.
        down: of its widest intermediate.
    """

    attention: Number = 0.0
    output: Number = 0.0
    up: Number = 0.0
    down: Number = 0.0


@dataclass(frozen=True, slots=True)
class Adapted:
    """Matrices of the mean layer that adapters stand beside, each with an input and an output of its own.

    Attributes:
        matrices: how many.
        inputs: elements of all their inputs for a token.
        outputs: elements of all their outputs for a token.
        rank: inner size of an adapter.
        dropout: 1 where inputs of adapters are dropped out.
    """

    matrices: Number = 0.0
    inputs: Number = 0.0
    outputs: Number = 0.0
    rank: Number = 0.0
    dropout: Number = 0.0


@dataclass(frozen=True, slots=True)
class Unpacking:
    """How a quantized frozen base is unpacked before each product.

    Attributes:
        bytes: bytes moved for a weight, beside reading it packed.
        flops: operations for a weight.
        kernels: kernels for a matrix.
    """

    bytes: Number = 0.0
    flops: Number = 0.0
    kernels: Number = 0.0
