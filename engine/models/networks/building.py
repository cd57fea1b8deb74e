"""Builds a network layer by layer, following shapes and what the backward pass keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from capacity_tui.engine.models.networks.blocks import Cell, Layer, LayerList, Moves, Shape, convolved

# Kernels that a compiler writes into one with what stands before them; a product is a library's kernel of its own.
_FUSED_BEHIND = frozenset({"norm", "activation", "add", "copy"})
_INDEX_BYTES = 8


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
        self._factors: dict[int, int] = {}
        self._kept_elsewhere = 0
        self._kept_bytes = 0
        self._awaited = 0
        self._frozen = False
        self._shared = False

    def built(self) -> LayerList:
        """Return the network built so far."""
        kept = sum(self._kept.values()) + self._kept_elsewhere
        factors = sum(elements for tensor, elements in self._factors.items() if tensor not in self._kept)
        return LayerList(tuple(self.layers), self.source, kept, self._kept_bytes, self._awaited, factors)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Add layers that are not trained: their backward pass needs nothing."""
        before, self._frozen = self._frozen, True
        yield
        self._frozen = before

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Add layers whose parameters were counted already: they read another tensor with the same weights."""
        before, self._shared = self._shared, True
        yield
        self._shared = before

    def convolution(
        self,
        out: int,
        kernel: tuple[int, int],
        *,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> None:
        """Add a convolution; the padding keeps the size at stride 1 unless given."""
        before = self.shape
        spans = [dilation * (side - 1) + 1 for side in kernel]
        margins = [(span - 1) // 2 if padding is None else padding for span in spans]
        height, width = (
            convolved(size, span, stride, margin)
            for size, span, margin in zip((before.height, before.width), spans, margins, strict=True)
        )
        depth = before.channels // groups * kernel[0] * kernel[1]
        self._keep()
        self._add(
            Layer(
                f"convolution {kernel[0]}x{kernel[1]}, {before.channels} to {out}",
                "product",
                Shape(out, height, width),
                out * depth + out * bias,
                before.elements,
                height * width,
                out // groups,
                depth,
                groups,
                unfolded=True,
                overlapping=kernel == (3, 3) and stride == dilation == groups == 1,
            )
        )

    def transposed(self, out: int, kernel: int, stride: int, bias: bool = True) -> None:
        """Add a transposed convolution without padding, which enlarges the image."""
        before = self.shape
        height, width = ((size - 1) * stride + kernel for size in (before.height, before.width))
        columns = out * kernel * kernel
        self._keep()
        self._add(
            Layer(
                f"transposed convolution {kernel}x{kernel}, {before.channels} to {out}",
                "product",
                Shape(out, height, width),
                before.channels * columns + out * bias,
                before.elements,
                before.positions,
                columns,
                before.channels,
                unfolded=True,
            )
        )

    def linear(self, out: int, bias: bool = True) -> None:
        """Add a linear layer over all features of a sample."""
        features = self.shape.elements
        self._keep()
        self._add(
            Layer(
                f"linear {features} to {out}",
                "product",
                Shape(out),
                out * features + out * bias,
                features,
                1,
                out,
                features,
            )
        )

    def projection(self, out: int, bias: bool = True) -> None:
        """Add a linear layer over the channels of each position."""
        before = self.shape
        self._keep()
        self._add(
            Layer(
                f"linear {before.channels} to {out}, each position",
                "product",
                replace(before, channels=out),
                out * before.channels + out * bias,
                before.elements,
                before.positions,
                out,
                before.channels,
            )
        )

    def condition(self, width: int, out: int, tokens: int, bias: bool) -> None:
        """Add a linear layer over signals besides the image: its output is no part of the image."""
        layer = Layer(
            f"linear {width} to {out}, condition",
            "product",
            self.shape,
            out * width + out * bias,
            tokens * width,
            tokens,
            out,
            width,
        )
        self._keep_more(tokens * (width + out))
        self._list(layer)

    def attention(self, heads: int, *, window: int = 0, context: int = 0, values: int = 0, fused: bool = True) -> None:
        """Add the core of attention over packed queries, keys and values, or over queries and a context alone.

        Args:
            window: side of the square windows within which positions attend to each other; 0 for the whole image.
            context: tokens of a context that is attended to in place of the image; 0 for none.
            values: channels of the values, where queries and keys have fewer; 0 where all have as many.
            fused: whether scores stay inside one kernel.
        """
        before, positions = self.shape, self.shape.positions
        channels = values or (before.channels if context else before.channels // 3)
        columns = (before.channels + values) // (4 * heads) if values else channels // heads  # mean of the two products
        span = context or (window * window if window else positions)
        after = replace(before, channels=channels)
        self._keep()
        self._add(Layer("attention", "attention", after, 0, before.elements, positions, columns, span, heads))
        if not fused:
            scores = heads * positions * span
            self._keep_more(2 * scores)
            moves = Moves(6 * scores, 8 * scores, 6 * scores, (4 * scores, 6 * scores, 4 * scores))
            self._list(Layer("attention scores", "norm", after, moves=moves))

    def recurrent(self, name: str, cell: Cell, out: int) -> None:
        """Add a recurrent layer over the positions as time steps.

        The inputs of all steps are multiplied in one product; each step then multiplies the state before it and
        computes its gates, one after another. There are two biases a gate, as in torch.nn.LSTM. Backpropagation
        through time needs the gates and states of every step (Werbos 1990).
        """
        before, gates, state = self.shape, cell.gates * out, Shape(out)
        self._keep()
        self._list(
            Layer(
                f"{name}, inputs of all steps",
                "product",
                replace(before, channels=gates),
                gates * before.channels + gates,
                before.elements,
                before.positions,
                gates,
                before.channels,
            )
        )
        read, states, written = 2 * gates + (cell.states - 1) * out, cell.states * out, (cell.kept + 1) * out
        trained, inference = read + written, read + states
        moves = Moves(trained, trained, inference, (trained, trained, inference))
        for step in range(before.positions):
            weights = 0 if step else gates * out + gates
            self._list(Layer(f"{name}, state of a step", "product", Shape(gates), weights, out, 1, gates, out))
            self._list(Layer(f"{name}, gates of a step", "activation", state, moves=moves))
        self._keep_more(before.positions * cell.kept * out)
        self._made += 1
        self.tensor, self.shape = self._made, replace(before, channels=out)
        self._keep()

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

    def reshaped(self, after: Shape) -> None:
        """Read the same numbers as another shape; costs nothing."""
        self.shape = after

    def narrowed(self, channels: int) -> None:
        """Read some of the channels, as a view: the whole tensor stays."""
        self._keep()
        self.shape = replace(self.shape, channels=channels)

    def concatenate(self, shapes: Sequence[Shape]) -> None:
        """Append the channels of earlier tensors."""
        after = replace(self.shape, channels=self.shape.channels + sum(other.channels for other in shapes))
        elements = after.elements
        moves = Moves(2 * elements, 2 * elements, 2 * elements, (elements, elements, elements))
        self._add(Layer("concatenation", "copy", after, moves=moves))

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

    def resume(self, shape: Shape, tensor: int) -> None:
        """Continue from an earlier tensor, for the other arm of a branch."""
        self.shape, self.tensor = shape, tensor

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

    def _keep(self) -> None:
        if not self._frozen:
            self._kept[self.tensor] = max(self._kept.get(self.tensor, 0), self.shape.elements)

    def _keep_more(self, elements: int, further_bytes: int = 0) -> None:
        """Keep what is no tensor between two layers."""
        if not self._frozen:
            self._kept_elsewhere += elements
            self._kept_bytes += further_bytes

    def _list(self, layer: Layer) -> None:
        parameters = 0 if self._shared else layer.parameters
        self.layers.append(replace(layer, parameters=parameters, frozen=self._frozen))

    def _add(self, layer: Layer) -> None:
        self._list(layer)
        self._made += 1
        self.tensor, self.shape = self._made, layer.output
