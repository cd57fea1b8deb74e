"""Builds a network layer by layer: beside its products, the layers that memory bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capacity_tui.engine.models.networks.blocks import Layer, Moves, Shape, convolved
from capacity_tui.engine.models.networks.products import ProductBuilder

# Kernels that a compiler writes into one with what stands before them; a product is a library's kernel of its own.
_FUSED_BEHIND = frozenset({"norm", "activation", "add", "copy"})
_INDEX_BYTES = 8


class LayerBuilder(ProductBuilder):
    """Adds products, and what reads and writes the tensors between them."""

    def last_position(self) -> None:
        """Copy the last position alone."""
        channels = self.shape.channels
        moves = Moves(2 * channels, 2 * channels, 2 * channels, (2 * channels,) * 3)
        self._add(Layer("last position", "copy", Shape(channels), moves=moves))

    def norm(self, kind: str, *, channels: int = 0, trained: bool = True) -> None:
        """Add a normalization with scale and shift for each channel; it keeps its input.

        ``batch`` reads its input once for the statistics and once more to apply them, ``group`` too; ``layer`` holds
        a position's channels in registers. Backward each reads input and gradient twice and writes a gradient.

        Args:
            kind: batch, layer or group.
            channels: of scale and shift, where they are not those of the image.
            trained: whether it has scale and shift.
        """
        self._keep()
        elements, read_and_write = self.shape.elements, 2 * self.shape.elements
        forward = read_and_write if kind == "layer" else 3 * elements
        inference = 3 * elements if kind == "group" else read_and_write
        moves = Moves(forward, 5 * elements, inference, (forward, 5 * elements, inference))
        name = "normalization" if kind == "batch" else f"{kind} normalization"
        parameters = 2 * (channels or self.shape.channels) * trained
        self._add(Layer(name, "norm", self.shape, parameters, wide=kind != "batch", moves=moves))

    def head_norm(self, width: int) -> None:
        """Add root-mean-square norms of packed queries and keys within each head, computed in 4 bytes.

        In turn they are widened, squared, averaged, scaled, narrowed and multiplied by a trained factor of each channel
        of a head, of queries and of keys: kernels that move 18 elements for each, as Diffusers 0.42 runs them.
        """
        elements = self._queries_and_keys()
        self._keep()
        self._keep_more(3 * elements)
        moves = Moves(18 * elements, 30 * elements, 18 * elements, (2 * elements, 4 * elements, 2 * elements))
        self._add(Layer("normalization of heads", "norm", self.shape, 2 * width, moves=moves))

    def rotary(self) -> None:
        """Add positions by the rotation of packed queries and keys, computed in 4 bytes (Su et al. 2021).

        Halves are negated and stacked, both widened, multiplied, added and narrowed: kernels that move 26 elements for
        each, as Diffusers 0.42 runs them. Factors are constants, so that nothing is kept.
        """
        elements = self._queries_and_keys()
        fused = (0, 0, 0) if self._joins() else (2 * elements, 2 * elements, 2 * elements)
        self._add(
            Layer("rotation", "norm", self.shape, moves=Moves(26 * elements, 26 * elements, 26 * elements, fused))
        )

    def fixed_norm(self) -> None:
        """Add a scale and a shift of each channel that stay as they came, as two kernels; keeps its factor."""
        elements = self.shape.elements
        self._factors[self.tensor] = 0 if self._frozen else elements
        fused = (0, 0, 0) if self._joins() else (2 * elements, 2 * elements, 2 * elements)
        moves = Moves(4 * elements, 2 * elements, 4 * elements, fused)
        self._add(Layer("fixed normalization", "norm", self.shape, wide=True, moves=moves))

    def activation(self, name: str) -> None:
        """Add an activation: ReLU keeps its output, others their input."""
        if name != "relu":
            self._keep()
        self._elementwise(name)
        if name == "relu":
            self._keep()

    def gated_activation(self, name: str) -> None:
        """Add an activation of one half of the channels that gates the other half; it keeps both and its result."""
        half = replace(self.shape, channels=self.shape.channels // 2)
        elements = half.elements
        self._keep()
        self._keep_more(elements)
        moves = Moves(5 * elements, 8 * elements, 5 * elements, (3 * elements, 5 * elements, 3 * elements))
        self._add(Layer(f"{name} gate", "activation", half, moves=moves))

    def focal_loss(self) -> None:
        """Add the loss of dense boxes as separate operations; scores, labels and seven results between are kept."""
        elements = self.shape.elements
        self._keep_more(9 * elements)
        moves = Moves(38 * elements, 32 * elements, 0, (3 * elements, 3 * elements, 0))
        self._add(Layer("focal loss", "activation", self.shape, wide=True, moves=moves))

    def shifted(self) -> None:
        """Add a signal to every position; keeps nothing."""
        elements = self.shape.elements
        fused = (0, 0, 0) if self._joins() else (2 * elements, elements, 2 * elements)
        moves = Moves(2 * elements, elements, 2 * elements, fused)
        self._add(Layer("shift", "add", self.shape, moves=moves))

    def dropout(self) -> None:
        """Add dropout, which keeps a mask of one byte an element."""
        self._keep_more(0, self.shape.elements)
        elements = self.shape.elements
        fused = (0, 0, 0) if self._joins() else (2 * elements, 2 * elements, 0)
        self._add(Layer("dropout", "activation", self.shape, moves=Moves(2 * elements, 2 * elements, 0, fused)))

    def channel_scale(self) -> None:
        """Add a trained factor for each channel."""
        self._keep()
        self._elementwise("scale of channels", self.shape.channels)

    def positions_added(self) -> None:
        """Add a trained table of positions to the image."""
        elements = self.shape.elements
        moves = Moves(2 * elements, elements, 2 * elements, (2 * elements, elements, 2 * elements))
        self._add(Layer("positions", "add", self.shape, elements, moves=moves))

    def table(self, parameters: int) -> None:
        """Add trained parameters whose use costs next to nothing, such as biases of attention."""
        self._list(Layer("table", "copy", self.shape, parameters))

    def pool(self, kernel: int, stride: int, padding: int = 0, *, maximum: bool = True, ceil: bool = False) -> None:
        """Add pooling, which keeps its input, and of maxima their positions (8 bytes each)."""
        height, width = (
            convolved(size, kernel, stride, padding, ceil=ceil) for size in (self.shape.height, self.shape.width)
        )
        self._keep()
        after = Shape(self.shape.channels, height, width)
        self._keep_more(0, _INDEX_BYTES * after.elements * maximum)
        self._moved(f"pooling {kernel}x{kernel}", "pool", after)

    def global_pool(self) -> None:
        """Add the mean over all positions."""
        self._moved("global pooling", "pool", Shape(self.shape.channels))

    def upsample(self, height: int, width: int) -> None:
        """Add an enlargement to this size."""
        self._moved(f"upsampling to {height}x{width}", "copy", Shape(self.shape.channels, height, width))

    def regions(self, count: int, size: int) -> None:
        """Cut regions out of the image, each sampled at a grid of points, and stack them."""
        self._moved(f"{count} regions of {size}x{size}", "copy", Shape(self.shape.channels, count * size, size))

    def selected(self, kernels: int) -> None:
        """Sort and select boxes by many small kernels, for whose results the host waits."""
        self._awaited += kernels

    def concatenate(self, shapes: Sequence[Shape]) -> None:
        """Append the channels of earlier tensors."""
        after = replace(self.shape, channels=self.shape.channels + sum(other.channels for other in shapes))
        elements = after.elements
        moves = Moves(2 * elements, 2 * elements, 2 * elements, (elements, elements, elements))
        self._add(Layer("concatenation", "copy", after, moves=moves))

    def join(self, other: Shape) -> None:
        """Append the positions of an earlier tensor of as many channels."""
        after = Shape(self.shape.channels, self.shape.positions + other.positions)
        elements = after.elements
        self._add(Layer("joined streams", "copy", after, moves=Moves(*(2 * elements,) * 3, (2 * elements,) * 3)))

    def add(self) -> None:
        """Add the sum with a tensor of the same shape; backward, gradients of both arms are added where they meet."""
        elements = self.shape.elements
        fused = (elements, elements, elements) if self._joins() else (3 * elements, 3 * elements, 3 * elements)
        moves = Moves(3 * elements, 3 * elements, 3 * elements, fused)
        self._add(Layer("residual sum", "add", self.shape, moves=moves))

    def gated(self) -> None:
        """Multiply with one factor for each channel that another arm gave; keeps the tensor."""
        self._keep()
        elements = self.shape.elements
        moves = Moves(2 * elements, 4 * elements, 2 * elements, (2 * elements, 4 * elements, 2 * elements))
        self._add(Layer("gate", "activation", self.shape, moves=moves))

    def _queries_and_keys(self) -> int:
        """Return the elements of queries and keys that stand packed beside the values."""
        return 2 * self.shape.elements // 3

    def _elementwise(self, name: str, parameters: int = 0) -> None:
        """Add a kernel that reads and writes every element, and backward reads it with its gradient."""
        elements = self.shape.elements
        moves = Moves(2 * elements, 3 * elements, 2 * elements, (2 * elements, 3 * elements, 2 * elements))
        if self._joins():
            moves = replace(moves, fused=(0, 0, 0))
        self._add(Layer(name, "activation", self.shape, parameters, moves=moves))

    def _moved(self, name: str, kind: str, after: Shape) -> None:
        """Add a kernel that reads one tensor and writes another, and backward the other way."""
        elements = self.shape.elements + after.elements
        moves = Moves(elements, elements, elements, (elements, elements, elements))
        self._add(Layer(name, "pool" if kind == "pool" else "copy", after, moves=moves))

    def _joins(self) -> bool:
        """Return whether a compiler writes the next kernel into the one before it."""
        return bool(self.layers) and self.layers[-1].kind in _FUSED_BEHIND
