"""Products of a network, layer by layer, following shapes and what the backward pass keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from capacity_tui.engine.models.networks.blocks import Cell, Layer, LayerList, Moves, Shape, convolved


class ProductBuilder:
    """Adds products one after another and follows shapes and what the backward pass keeps.

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
        padding: tuple[int, int] | None = None,
        groups: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> None:
        """Add a convolution; the padding keeps the size at stride 1 unless given, above and beside the image."""
        before = self.shape
        spans = [dilation * (side - 1) + 1 for side in kernel]
        margins = [(span - 1) // 2 for span in spans] if padding is None else padding
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

    def attention(
        self, heads: int, *, window: int = 0, areas: int = 1, context: int = 0, values: int = 0, fused: bool = True
    ) -> None:
        """Add the core of attention over packed queries, keys and values, or over queries and a context alone.

        Args:
            window: side of the square windows within which positions attend to each other; 0 for the whole image.
            areas: equal parts of the image within which they do, in place of windows.
            context: tokens of a context that is attended to in place of the image; 0 for none.
            values: channels of the values, where queries and keys have fewer; 0 where all have as many.
            fused: whether scores stay inside one kernel.
        """
        before, positions = self.shape, self.shape.positions
        channels = values or (before.channels if context else before.channels // 3)
        columns = (before.channels + values) // (4 * heads) if values else channels // heads  # mean of the two products
        span = context or (window * window if window else positions // areas)
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

    def resume(self, shape: Shape, tensor: int) -> None:
        """Continue from an earlier tensor, for the other arm of a branch."""
        self.shape, self.tensor = shape, tensor

    def started(self, source: Shape) -> None:
        """Continue from another input that is made before the run."""
        self._made += 1
        self.resume(source, self._made)

    def reshaped(self, after: Shape) -> None:
        """Read the same numbers as another shape; costs nothing."""
        self.shape = after

    def narrowed(self, after: Shape) -> None:
        """Read some of the channels or positions, as a view: the whole tensor stays."""
        self._keep()
        self.shape = after

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
