"""Layers of a network with the shapes that flow through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LayerKind = Literal["product", "attention", "norm", "activation", "pool", "add", "copy"]


@dataclass(frozen=True, slots=True)
class Shape:
    """One sample between two layers.

    Attributes:
        channels: channels of an image, or features.
        height: rows of an image; 1 for features.
        width: columns of an image; 1 for features.
    """

    channels: int
    height: int = 1
    width: int = 1

    @property
    def positions(self) -> int:
        """Places of the image, or tokens."""
        return self.height * self.width

    @property
    def elements(self) -> int:
        """Numbers in one sample."""
        return self.channels * self.positions


@dataclass(frozen=True, slots=True)
class Moves:
    """Elements of one sample that a layer bound by memory reads and writes.

    Attributes:
        forward: in the forward pass of training, one kernel an operation.
        backward: in the backward pass.
        inference: in a forward pass without training.
        fused: the same three where a compiler writes one kernel for all that stands between two products.
    """

    forward: int
    backward: int
    inference: int
    fused: tuple[int, int, int]


NO_MOVES = Moves(0, 0, 0, (0, 0, 0))


@dataclass(frozen=True, slots=True)
class Layer:
    """One operation on every sample.

    A convolution is the matrix product of its unfolded input (positions × depth) with its weights
    (depth × columns); a linear layer the same with one position. Attention multiplies every position with as many
    others as it attends to (depth), twice, in heads (groups) of so many columns.

    Attributes:
        name: what it is, in the field's words.
        kind: product, attention, norm, activation, pool, add or copy.
        output: shape after it.
        parameters: trained parameters.
        read: elements of one sample that a product or attention reads.
        positions: output positions of a product.
        columns: output channels of a product, of one group.
        depth: inputs of one output, of one group.
        groups: products side by side.
        unfolded: whether it is a convolution over an image, whose channels libraries want beside each other.
        overlapping: whether it is a convolution of 3x3 windows one apart, for which there are ways with fewer products.
        wide: whether mixed precision computes it in 4 bytes.
        frozen: whether it is not trained, and only runs forward.
        moves: what a layer bound by memory reads and writes.
    """

    name: str
    kind: LayerKind
    output: Shape
    parameters: int = 0
    read: int = 0
    positions: int = 0
    columns: int = 0
    depth: int = 0
    groups: int = 1
    unfolded: bool = False
    overlapping: bool = False
    wide: bool = False
    frozen: bool = False
    moves: Moves = NO_MOVES

    @property
    def flops(self) -> int:
        """FLOPs of its products for one sample, a multiplication and an addition counted as two."""
        products = 2 if self.kind == "attention" else 1
        return 2 * products * self.positions * self.columns * self.depth * self.groups


@dataclass(frozen=True, slots=True)
class LayerList:
    """A whole network.

    Attributes:
        layers: in their order.
        input: shape of one sample.
        kept_elements: elements of one sample that the backward pass needs, in the activation type.
        kept_bytes: further bytes: indices and masks.
        awaited: small kernels of a batch for whose results the host waits, as those that select boxes.
    """

    layers: tuple[Layer, ...]
    input: Shape
    kept_elements: int
    kept_bytes: int
    awaited: int = 0

    @property
    def parameters(self) -> int:
        """Parameters, frozen ones too."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def trained_parameters(self) -> int:
        """Trained parameters."""
        return sum(layer.parameters for layer in self.layers if not layer.frozen)

    @property
    def flops(self) -> int:
        """FLOPs of the matrix products of a forward pass of one sample."""
        return sum(layer.flops for layer in self.layers)

    @property
    def trained_flops(self) -> int:
        """The same of the layers that are trained."""
        return sum(layer.flops for layer in self.layers if not layer.frozen)

    @property
    def transformed(self) -> int:
        """Elements of one sample around the largest convolution for which there is a way with fewer products."""
        return max((layer.read + layer.output.elements for layer in self.layers if layer.overlapping), default=0)

    @property
    def largest(self) -> int:
        """Elements of the two largest neighbours: what a forward pass alone keeps of one sample."""
        sizes = [self.input.elements, *(layer.output.elements for layer in self.layers)]
        return max(a + b for a, b in zip(sizes, sizes[1:] or sizes, strict=False))
