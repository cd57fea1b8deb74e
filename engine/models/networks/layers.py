"""Layers of a network with the shapes that flow through them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LayerKind = Literal["product", "norm", "activation", "pool", "add", "copy"]


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
    def elements(self) -> int:
        """Numbers in one sample."""
        return self.channels * self.height * self.width


@dataclass(frozen=True, slots=True)
class Layer:
    """One operation on every sample.

    A convolution is the matrix product of its unfolded input (positions × depth) with its weights
    (depth × columns); a linear layer the same with one position.

    Attributes:
        name: what it is, in the field's words.
        kind: product, norm, activation, pool, add or copy.
        moved: elements of one sample that it reads and writes; of a product only those it reads.
        output: shape after it.
        parameters: trained parameters.
        positions: output positions of a product.
        columns: output channels of a product, of one group.
        depth: inputs of one output, of one group.
        groups: products side by side.
    """

    name: str
    kind: LayerKind
    moved: int
    output: Shape
    parameters: int = 0
    positions: int = 0
    columns: int = 0
    depth: int = 0
    groups: int = 1

    @property
    def flops(self) -> int:
        """FLOPs of a product for one sample, a multiplication and an addition counted as two."""
        return 2 * self.positions * self.columns * self.depth * self.groups


@dataclass(frozen=True, slots=True)
class LayerList:
    """A whole network.

    Attributes:
        layers: in their order.
        input: shape of one sample.
        kept_elements: elements of one sample that the backward pass needs, in the activation type.
        kept_bytes: further bytes: indices and masks.
    """

    layers: tuple[Layer, ...]
    input: Shape
    kept_elements: int
    kept_bytes: int

    @property
    def parameters(self) -> int:
        """Trained parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def flops(self) -> int:
        """FLOPs of the matrix products of a forward pass of one sample."""
        return sum(layer.flops for layer in self.layers)

    @property
    def largest(self) -> int:
        """Elements of the two largest neighbours: what a forward pass alone keeps of one sample."""
        sizes = [self.input.elements, *(layer.output.elements for layer in self.layers)]
        return max(a + b for a, b in zip(sizes, sizes[1:] or sizes, strict=False))


class LayerBuilder:
    """Adds layers one after another and follows shapes and what the backward pass keeps.

    Each tensor has a number, so that one that two layers keep counts once: an activation in place
    shares its output with the next product's input.
    """

    def __init__(self, source: Shape) -> None:
        self.source = source
        self.shape = source
        self.layers: list[Layer] = []
        self.tensor = 0
        self._made = 0
        self._kept: dict[int, int] = {}
        self._kept_bytes = 0

    def built(self) -> LayerList:
        """Return the network built so far."""
        return LayerList(tuple(self.layers), self.source, sum(self._kept.values()), self._kept_bytes)

    def convolution(self, out: int, kernel: int, *, stride: int = 1, padding: int | None = None, groups: int = 1,
                    bias: bool = True) -> None:  # fmt: skip
        """Add a convolution; the padding keeps the size at stride 1 unless given."""
        before = self.shape
        margin = (kernel - 1) // 2 if padding is None else padding
        height, width = (_convolved(size, kernel, stride, margin) for size in (before.height, before.width))
        depth = before.channels // groups * kernel * kernel
        self._keep()
        self._add(Layer(
            f"convolution {kernel}x{kernel}, {before.channels} to {out}", "product", before.elements,
            Shape(out, height, width), out * depth + out * bias, height * width, out // groups, depth, groups,
        ))  # fmt: skip

    def transposed(self, out: int, kernel: int, stride: int, bias: bool = True) -> None:
        """Add a transposed convolution without padding, which enlarges the image."""
        before = self.shape
        height, width = ((size - 1) * stride + kernel for size in (before.height, before.width))
        columns = out * kernel * kernel
        self._keep()
        self._add(Layer(
            f"transposed convolution {kernel}x{kernel}, {before.channels} to {out}", "product", before.elements,
            Shape(out, height, width), before.channels * columns + out * bias, before.height * before.width, columns,
            before.channels,
        ))  # fmt: skip

    def linear(self, out: int, bias: bool = True) -> None:
        """Add a linear layer over all features of a sample."""
        features = self.shape.elements
        self._keep()
        parameters = out * features + out * bias
        self._add(Layer(f"linear {features} to {out}", "product", features, Shape(out), parameters, 1, out, features))

    def norm(self) -> None:
        """Add a normalization with scale and shift for each channel; it reads its input twice and keeps it."""
        self._keep()
        self._add(Layer("normalization", "norm", 3 * self.shape.elements, self.shape, 2 * self.shape.channels))

    def activation(self, name: str) -> None:
        """Add an activation: ReLU keeps its output, others their input."""
        if name != "relu":
            self._keep()
        self._add(Layer(name, "activation", 2 * self.shape.elements, self.shape))
        if name == "relu":
            self._keep()

    def dropout(self) -> None:
        """Add dropout, which keeps a mask of one byte an element."""
        self._kept_bytes += self.shape.elements
        self._add(Layer("dropout", "activation", 2 * self.shape.elements, self.shape))

    def pool(self, kernel: int, stride: int, padding: int = 0) -> None:
        """Add maximum pooling, which keeps its input and the positions of the maxima (8 bytes each)."""
        height, width = (_convolved(size, kernel, stride, padding) for size in (self.shape.height, self.shape.width))
        self._keep()
        after = Shape(self.shape.channels, height, width)
        self._kept_bytes += 8 * after.elements
        self._add(Layer(f"pooling {kernel}x{kernel}", "pool", self.shape.elements + after.elements, after))

    def global_pool(self) -> None:
        """Add the mean over all positions."""
        after = Shape(self.shape.channels)
        self._add(Layer("global pooling", "pool", self.shape.elements + after.elements, after))

    def upsample(self, factor: int) -> None:
        """Add an enlargement by an integer factor."""
        after = Shape(self.shape.channels, self.shape.height * factor, self.shape.width * factor)
        self._add(Layer(f"upsampling {factor}x", "copy", self.shape.elements + after.elements, after))

    def concatenate(self, others: Sequence[Shape]) -> None:
        """Append the channels of earlier tensors."""
        channels = self.shape.channels + sum(other.channels for other in others)
        after = Shape(channels, self.shape.height, self.shape.width)
        self._add(Layer("concatenation", "copy", 2 * after.elements, after))

    def add(self) -> None:
        """Add the residual sum with a tensor of the same shape."""
        self._add(Layer("residual sum", "add", 3 * self.shape.elements, self.shape))

    def resume(self, shape: Shape, tensor: int) -> None:
        """Continue from an earlier tensor, for the other arm of a branch."""
        self.shape, self.tensor = shape, tensor

    def _keep(self) -> None:
        self._kept[self.tensor] = self.shape.elements

    def _add(self, layer: Layer) -> None:
        self.layers.append(layer)
        self._made += 1
        self.tensor, self.shape = self._made, layer.output


def _convolved(size: int, kernel: int, stride: int, padding: int) -> int:
    """Return the output length of a convolution or pooling along one side, 0 where the kernel does not fit."""
    return max(0, math.floor((size + 2 * padding - kernel) / stride) + 1)
