"""Layers of a network with the shapes that flow through them, and the blocks that networks are made of.

A block takes the channels before it and its options, and returns entries of a list of layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import dropwhile, takewhile
from typing import Any, Literal

from capacity_tui.engine.record import dataclass

LayerKind = Literal["product", "attention", "norm", "activation", "pool", "add", "copy"]


@dataclass(frozen=True, slots=True)
class Shape:
    """One sample between two layers."""

    channels: int  # channels of an image, or features
    height: int = 1  # rows of an image; 1 for features
    width: int = 1  # columns of an image; 1 for features

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
    """Elements of one sample that a layer bound by memory reads and writes."""

    forward: int  # in the forward pass of training, one kernel an operation
    backward: int  # in the backward pass
    inference: int  # in a forward pass without training
    # the same three where a compiler writes one kernel for all that stands between two products
    fused: tuple[int, int, int]


NO_MOVES = Moves(0, 0, 0, (0, 0, 0))


@dataclass(frozen=True, slots=True)
class Layer:
    """One operation on every sample.

    A convolution is the matrix product of its unfolded input (positions × depth) with its weights
    (depth × columns); a linear layer the same with one position. Attention multiplies every position with as many
    others as it attends to (depth), twice, in heads (groups) of this many columns.
    """

    name: str  # what it is, in the field's words
    kind: LayerKind  # product, attention, norm, activation, pool, add or copy
    output: Shape
    parameters: int = 0
    read: int = 0  # elements of one sample that a product or attention reads
    positions: int = 0  # output positions of a product
    columns: int = 0  # output channels of a product, of one group
    depth: int = 0  # inputs of one output, of one group
    groups: int = 1  # products side by side
    unfolded: bool = False  # whether it is a convolution over an image, whose channels libraries want side by side
    # whether it is a convolution of 3x3 windows one apart, for which there are ways with fewer products
    overlapping: bool = False
    wide: bool = False  # whether mixed precision computes it in 4 bytes
    frozen: bool = False  # whether it is not trained, and only runs forward
    moves: Moves = NO_MOVES  # what a layer bound by memory reads and writes

    @property
    def flops(self) -> int:
        """FLOPs of its products for one sample, a multiplication and an addition counted as two."""
        products = 2 if self.kind == "attention" else 1
        return 2 * products * self.positions * self.columns * self.depth * self.groups


@dataclass(frozen=True, slots=True)
class LayerList:
    """A whole network."""

    layers: tuple[Layer, ...]
    input: Shape
    kept_elements: int  # elements of one sample that the backward pass needs, in the activation type
    kept_bytes: int  # further bytes: indices and masks
    awaited: int = 0  # small kernels of a batch for whose results the host waits, as those that select boxes
    # elements of one sample that are only multiplied by constants, of which no gradient is needed
    factor_elements: int = 0

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


Entries = list[Any]
Block = Callable[..., Entries]


def convolved(size: int, kernel: int, stride: int, padding: int, *, ceil: bool = False) -> int:
    """Return the output length of a convolution or pooling along one side, 0 where the kernel does not fit."""
    steps = (size + 2 * padding - kernel) / stride
    return max(0, (math.ceil(steps) if ceil else math.floor(steps)) + 1)


def rounded(channels: float, divisor: int = 8) -> int:
    """Return channels as a multiple, never a tenth less than asked for (Sandler et al. 2018)."""
    multiple = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return multiple + divisor if multiple < 0.9 * channels else multiple


def conv_norm(
    out: int | str,
    kernel: object = 3,
    stride: int = 1,
    groups: int = 1,
    activation: str = "",
    padding: int | None = None,
    norm: str = "batch",
    dilation: int = 1,
) -> Entries:
    """A convolution without bias, a normalization, and an activation where one is named."""
    options = {"out": out, "kernel": kernel, "stride": stride, "groups": groups, "padding": padding, "bias": False}
    options["dilation"] = dilation
    return [{"conv": options}, {"norm": norm}, *([{"activation": activation}] if activation else [])]


def convolution_norm(
    _channels: int,
    width: int,
    kernel: object = 3,
    stride: int = 1,
    groups: int = 1,
    activation: str = "relu",
    padding: int | None = None,
) -> Entries:
    """A convolution without bias, batch normalization and an activation."""
    return conv_norm(width, kernel, stride, groups, activation, padding)


def _gate(inner: int, activation: str = "relu", gate: str = "sigmoid") -> Entries:
    return [{"gate": {"inner": inner, "activation": activation, "gate": gate}}] if inner else []


def _around(branch: Entries, shortcut: Entries | None) -> Entries:
    return [{"residual": {"branch": branch, "shortcut": shortcut}}]


def _projected(in_channels: int, out: int, stride: int, norm: str = "batch") -> Entries | None:
    return conv_norm(out, 1, stride, norm=norm) if stride > 1 or in_channels != out else None


def resnet_stem(_channels: int, width: int = 64, activation: str = "relu", norm: str = "batch") -> Entries:
    """A 7x7 convolution and pooling, to a quarter of the image's side."""
    pool = {"pool": {"kernel": 3, "stride": 2, "padding": 1}}
    return [*conv_norm(width, 7, 2, activation=activation, norm=norm), pool]


def basic_block(in_channels: int, width: int, stride: int = 1) -> Entries:
    """Two 3x3 convolutions around a shortcut (He et al. 2016, figure 5 left)."""
    branch = [*conv_norm(width, 3, stride, activation="relu"), *conv_norm(width, 3)]
    return [*_around(branch, _projected(in_channels, width, stride)), {"activation": "relu"}]


def bottleneck(
    in_channels: int,
    width: int,
    stride: int = 1,
    groups: int = 1,
    group_width: int = 64,
    reduction: int = 0,
    norm: str = "batch",
    early: bool = False,
    dilation: int = 1,
) -> Entries:
    """1x1, 3x3 and 1x1 convolutions around a shortcut.

    Args:
        width: a quarter of the channels after it.
        stride: of the 3x3 convolution.
        groups: of the 3x3 convolution (Xie et al. 2017).
        group_width: channels of a group at 64 channels (Zagoruyko and Komodakis 2016 widen them).
        reduction: channels after it over those inside its gate (Hu et al. 2018); 0 without a gate.
        norm: behind each convolution.
        early: whether the stride is in the first of them, as it was at first, or in the second, as libraries have it.
        dilation: of the 3x3 convolution.
    """
    inner, out = width * group_width // 64 * groups, 4 * width
    branch = [
        *conv_norm(inner, 1, stride if early else 1, activation="relu", norm=norm),
        *conv_norm(inner, 3, 1 if early else stride, groups, "relu", norm=norm, dilation=dilation),
        *conv_norm(out, 1, norm=norm),
        *_gate(out // reduction if reduction else 0),
    ]
    return [*_around(branch, _projected(in_channels, out, stride, norm)), {"activation": "relu"}]


def regnet_block(in_channels: int, width: int, stride: int = 1, group_width: int = 8, gate: float = 0.0) -> Entries:
    """A bottleneck that does not narrow, with grouped 3x3 convolutions (Radosavovic et al. 2020).

    Args:
        stride: of the 3x3 convolution.
        group_width: channels of a group.
        gate: channels inside its gate over those before it; 0 without one.
    """
    branch = [
        *conv_norm(width, 1, activation="relu"),
        *conv_norm(width, 3, stride, width // min(group_width, width), "relu"),
        *_gate(round(gate * in_channels)),
        *conv_norm(width, 1),
    ]
    return [*_around(branch, _projected(in_channels, width, stride)), {"activation": "relu"}]


def inverted_residual(
    in_channels: int,
    width: int,
    stride: int = 1,
    expand: float = 0,
    kernel: int = 3,
    inner: int = 0,
    gate: float = 0.0,
    gate_of: str = "input",
    gate_function: str = "sigmoid",
    activation: str = "relu",
) -> Entries:
    """A depthwise convolution between two 1x1, wider inside than outside (Sandler et al. 2018).

    Args:
        stride: of the depthwise convolution.
        expand: channels inside over those before it.
        kernel: of the depthwise convolution.
        inner: channels inside, in place of ``expand``.
        gate: channels inside its gate over those of ``gate_of``; 0 without one.
        gate_of: ``input`` of the block, or ``inside`` it, then rounded to a multiple of 8.
        gate_function: what the gate ends in.
        activation: behind the first two convolutions.
    """
    inside = inner or rounded(in_channels * expand)
    squeezed = rounded(inside * gate) if gate_of == "inside" else round(in_channels * gate)
    branch = [
        *(conv_norm(inside, 1, activation=activation) if inside != in_channels else []),
        *conv_norm(inside, kernel, stride, inside, activation),
        *_gate(squeezed if gate else 0, "relu" if gate_of == "inside" else activation, gate_function),
        *conv_norm(width, 1),
    ]
    return _around(branch, None) if stride == 1 and in_channels == width else branch


def fused_residual(
    in_channels: int, width: int, stride: int = 1, expand: float = 1, kernel: int = 3, activation: str = "silu"
) -> Entries:
    """An inverted residual whose first two convolutions are one (Tan and Le 2021)."""
    inside = rounded(in_channels * expand)
    branch = conv_norm(inside, kernel, stride, activation=activation)
    if inside != in_channels:
        branch += conv_norm(width, 1)
    return _around(branch, None) if stride == 1 and in_channels == width else branch


def convnext_block(_channels: int, width: int, stride: int = 1, kernel: int = 7) -> Entries:
    """A depthwise convolution and a feed-forward (Liu et al. 2022); with a stride, what narrows the image first."""
    narrowing = [{"norm": "layer"}, {"conv": {"out": width, "kernel": stride, "stride": stride, "padding": 0}}]
    branch = [
        {"conv": {"out": width, "kernel": kernel, "groups": width}},
        {"norm": "layer"},
        {"project": 4 * width},
        {"activation": "gelu"},
        {"project": width},
        "channel_scale",
    ]
    return [*(narrowing if stride > 1 else []), *_around(branch, None)]


def dense_layer(_channels: int, width: int, narrow: int = 4) -> Entries:
    """Adds ``width`` channels to those before it (Huang et al. 2017)."""
    branch = ["norm", "activation", *conv_norm(narrow * width, 1, activation="relu")]
    return [{"save": "dense"}, *branch, {"conv": {"out": width, "bias": False}}, {"concat": "dense"}]


def dense_transition(in_channels: int) -> Entries:
    """Halves channels and sides between two dense blocks."""
    return [
        "norm",
        "activation",
        {"conv": {"out": in_channels // 2, "kernel": 1, "bias": False}},
        {"pool": {"kernel": 2, "kind": "mean"}},
    ]


BLOCKS: Mapping[str, Block] = {
    "convolution_norm": convolution_norm,
    "resnet_stem": resnet_stem,
    "basic_block": basic_block,
    "bottleneck": bottleneck,
    "regnet_block": regnet_block,
    "inverted_residual": inverted_residual,
    "fused_residual": fused_residual,
    "convnext_block": convnext_block,
    "dense_layer": dense_layer,
    "dense_transition": dense_transition,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one kind of recurrent layer computes in a time step."""

    gates: int  # vectors as wide as the state that a step computes from its input and from the state before it
    states: int  # vectors carried on to the next step: the hidden state, and the cell state where there is one
    # vectors of a step besides the hidden state that the backward pass needs: gates that are not the state itself, the
    # cell state, and what the reset gate of a GRU multiplies
    kept: int


CELLS: Mapping[str, Cell] = {
    "rnn": Cell(gates=1, states=1, kept=0),
    "gru": Cell(gates=3, states=1, kept=4),
    "lstm": Cell(gates=4, states=2, kept=5),
}
"""Elman 1990; Cho et al. 2014; Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000."""


def adapter_parameters(network: LayerList, rank: int) -> int:
    """Return the parameters of adapters on queries, keys, values and outputs of every attention, none for no attention.

    A product makes as many of these as its columns are widths of the attention; each has two matrices of ``rank``
    (Hu et al. 2021), as Diffusers adds them to U-Nets and transformers of diffusion.
    """
    return sum(rank * matrices * (depth + width) for matrices, depth, width in _adapted(network.layers))


def _adapted(layers: tuple[Layer, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield the matrices that a product beside an attention makes, with the inputs and outputs of each.

    Between products and attention queries and keys may be normalized, and streams joined; each stream has its own.
    """
    for index, layer in enumerate(layers):
        if layer.kind != "attention":
            continue
        width = layer.columns * layer.groups
        before = dropwhile(lambda entry: entry.kind in ("norm", "copy"), reversed(layers[:index]))
        for product in (*_products(before), *_products(layers[index + 1 :])):
            if not product.unfolded:
                yield max(round(product.columns / width), 1), product.depth, width


def _products(layers: Iterable[Layer]) -> Iterator[Layer]:
    """Yield the products that come first."""
    return takewhile(lambda layer: layer.kind == "product", layers)
