"""From a list of layers, as a file gives it, to a network with its shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from capacity_tui.engine.catalog.names import nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.models.networks.layers import LayerBuilder, LayerList, Shape

# Stands for the number of classes wherever a size is asked for.
CLASSES = "classes"


def build_network(layers: Iterable[object], source: Shape, classes: int) -> LayerList:
    """Return a network from its list of layers.

    Args:
        layers: names, or mappings of one name to its options.
        source: shape of the input.
        classes: what the size ``classes`` stands for.

    Raises:
        PlanError: an unknown layer or option, or an image too small for the network.
    """
    reader = _Reader(LayerBuilder(source), classes)
    reader.read(layers)
    return reader.builder.built()


class _Reader:
    """Reads entries one after another into a builder."""

    def __init__(self, builder: LayerBuilder, classes: int) -> None:
        self.builder = builder
        self.classes = classes
        self.saved: dict[str, Shape] = {}
        self.kinds: Mapping[str, Callable[..., None]] = {
            "conv": self._convolution,
            "transposed": self._transposed,
            "linear": self._linear,
            "norm": self.builder.norm,
            "activation": self._activation,
            "dropout": self.builder.dropout,
            "pool": self._pool,
            "global_pool": self.builder.global_pool,
            "upsample": self._upsample,
            "save": self._save,
            "concat": self._concatenate,
            "residual": self._residual,
            "repeat": self._repeat,
            "basic_block": self._basic_block,
            "bottleneck": self._bottleneck,
        }

    def read(self, layers: Iterable[object]) -> None:
        for entry in layers:
            name, options = _entry(entry)
            if name not in self.kinds:
                near = nearest(name, self.kinds, 1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self.kinds)}"
                raise PlanError("no layer is called", repr(name)[:60], hint)
            try:
                self.kinds[name](**options)
            except TypeError:
                raise PlanError(f"options a {name} layer does not take", ", ".join(options)[:60]) from None
            if not self.builder.shape.elements:
                raise PlanError("the image is too small for the network", f"nothing is left after {name}")

    def _size(self, value: int | str) -> int:
        return self.classes if value == CLASSES else int(value)

    def _convolution(self, out: int | str, kernel: int = 3, stride: int = 1, padding: int | None = None,
                     groups: int = 1, bias: bool = True) -> None:  # fmt: skip
        self.builder.convolution(self._size(out), kernel, stride=stride, padding=padding, groups=groups, bias=bias)

    def _transposed(self, out: int, kernel: int = 2, stride: int = 2, bias: bool = True) -> None:
        self.builder.transposed(out, kernel, stride, bias)

    def _linear(self, out: int | str, bias: bool = True) -> None:
        self.builder.linear(self._size(out), bias)

    def _activation(self, out: str = "relu") -> None:
        self.builder.activation(out)

    def _pool(self, kernel: int = 2, stride: int | None = None, padding: int = 0) -> None:
        self.builder.pool(kernel, stride or kernel, padding)

    def _upsample(self, out: int = 2) -> None:
        self.builder.upsample(out)

    def _save(self, out: str) -> None:
        self.saved[out] = self.builder.shape

    def _concatenate(self, out: str) -> None:
        if out not in self.saved:
            raise PlanError("nothing was saved under this name", repr(out), "put save: NAME further up")
        self.builder.concatenate([self.saved[out]])

    def _residual(self, branch: list[object], shortcut: list[object] | None = None) -> None:
        shape, tensor = self.builder.shape, self.builder.tensor
        self.read(branch)
        after, last = self.builder.shape, self.builder.tensor
        if shortcut:
            self.builder.resume(shape, tensor)
            self.read(shortcut)
        self.builder.resume(after, last)
        self.builder.add()

    def _repeat(self, count: int, layers: list[object]) -> None:
        for _ in range(count):
            self.read(layers)

    def _basic_block(self, width: int, stride: int = 1) -> None:
        """Two 3x3 convolutions around a shortcut (He et al. 2016, figure 5 left)."""
        branch = [*_conv_norm(width, 3, stride), "activation", *_conv_norm(width, 3)]
        self._block(branch, width, stride)

    def _bottleneck(self, width: int, stride: int = 1) -> None:
        """1x1, 3x3 and 1x1 convolutions around a shortcut, the stride in the 3x3 as libraries have it."""
        branch = [
            *_conv_norm(width, 1),
            "activation",
            *_conv_norm(width, 3, stride),
            "activation",
            *_conv_norm(4 * width, 1),
        ]
        self._block(branch, 4 * width, stride)

    def _block(self, branch: list[object], out: int, stride: int) -> None:
        changes = stride > 1 or self.builder.shape.channels != out
        self._residual(branch, _conv_norm(out, 1, stride) if changes else None)
        self.builder.activation("relu")


def _conv_norm(out: int, kernel: int, stride: int = 1) -> list[object]:
    return [{"conv": {"out": out, "kernel": kernel, "stride": stride, "bias": False}}, "norm"]


def _entry(entry: object) -> tuple[str, dict[str, Any]]:
    """Return name and options: ``relu``, ``linear: 10`` and ``conv: {out: 64}`` are all entries."""
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, dict) or len(entry) != 1:
        raise PlanError("not a layer", repr(entry)[:60], "write a name, or one name with its options")
    name, options = next(iter(entry.items()))
    return str(name), dict(options) if isinstance(options, dict) else {"out": options}
