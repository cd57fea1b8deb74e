"""From a list of layers, as a file gives it, to a network with its shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.models.networks.blocks import BLOCKS, CELLS, Block, Entries, LayerList, Shape, rounded
from capacity_tui.engine.models.networks.branch_blocks import MERGED_BLOCKS, SEGMENTATION_BLOCKS
from capacity_tui.engine.models.networks.building import LayerBuilder
from capacity_tui.engine.models.networks.composite_blocks import ATTENTION_BLOCKS, DETECTION_BLOCKS
from capacity_tui.engine.models.networks.cross_stage_blocks import CROSS_STAGE_BLOCKS
from capacity_tui.engine.models.networks.stream_blocks import STREAM_BLOCKS

# Stands for the number of classes wherever a size is asked for; ``4 classes`` for four times as many.
CLASSES = "classes"
_BLOCKS: Mapping[str, Block] = {
    **BLOCKS,
    **ATTENTION_BLOCKS,
    **DETECTION_BLOCKS,
    **CROSS_STAGE_BLOCKS,
    **MERGED_BLOCKS,
    **SEGMENTATION_BLOCKS,
    **STREAM_BLOCKS,
}


def build_network(layers: Iterable[object], source: Shape, classes: int, *, trains: bool = True) -> LayerList:
    """Return a network from its list of layers.

    Args:
        layers: names, or mappings of one name to its options.
        classes: what the size ``classes`` stands for.
        trains: whether it is trained: detectors then look at other numbers of regions.

    Raises:
        PlanError: an unknown layer or option, or an image too small for the network.
    """
    reader = _Reader(LayerBuilder(source), classes, trains)
    reader.read(layers)
    return reader.builder.built()


class _Reader:
    """Reads entries one after another into a builder."""

    def __init__(self, builder: LayerBuilder, classes: int, trains: bool) -> None:
        self.builder = builder
        self.classes = classes
        self.trains = trains
        self.saved: dict[str, tuple[Shape, int]] = {}
        self.wider, self.deeper = 1.0, 1.0
        self.kinds: Mapping[str, Callable[..., None]] = {
            "conv": self._convolution,
            "transposed": self._transposed,
            "linear": self._linear,
            "project": self._projection,
            "condition": self._condition,
            "attention": self._attention,
            "recurrent": self._recurrent,
            "last_position": builder.last_position,
            "norm": self._norm,
            "activation": self._activation,
            "gated_activation": self._gated_activation,
            "shift": builder.shifted,
            "rotary": builder.rotary,
            "channel_scale": builder.channel_scale,
            "positions": builder.positions_added,
            "table": self._table,
            "dropout": builder.dropout,
            "pool": self._pool,
            "global_pool": builder.global_pool,
            "upsample": self._upsample,
            "regions": self._regions,
            "selection": self._selection,
            "focal_loss": self._focal_loss,
            "flatten": self._flatten,
            "latents": self._latents,
            "text": self._text,
            "save": self._save,
            "resume": self._resume,
            "narrow": self._narrow,
            "concat": self._concatenate,
            "join": self._join,
            "part": self._part,
            "add": self._add,
            "residual": self._residual,
            "parallel": self._parallel,
            "aside": self._aside,
            "shared": self._shared,
            "gate": self._gate,
            "frozen": self._frozen,
            "in_training": self._in_training,
            "repeat": self._repeat,
            "stages": self._stages,
            "scaled": self._scaled,
        }

    def read(self, layers: Iterable[object]) -> None:
        for entry in layers:
            name, options = _entry(entry)
            try:
                if name in _BLOCKS:
                    self.read(_BLOCKS[name](self.builder.shape.channels, **_as_width(options)))
                elif name in self.kinds:
                    self.kinds[name](**options)
                else:
                    near = nearest(name, [*self.kinds, *_BLOCKS], 1)
                    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(self.kinds)}"
                    raise PlanError("no layer is called", repr(name)[:60], hint)
            except TypeError:
                raise PlanError(f"options a {name} layer does not take", ", ".join(options)[:60]) from None
            if not self.builder.shape.elements:
                raise PlanError("the image is too small for the network", f"nothing is left after {name}")

    def _size(self, value: int | str) -> int:
        if not isinstance(value, str):
            return int(value)
        times, _, unit = value.rpartition(" ")
        if unit != CLASSES or not (times or "1").isdecimal():
            raise PlanError("not a size", repr(value)[:60], f"write a number, {CLASSES}, or 4 {CLASSES}")
        return int(times or 1) * self.classes

    def _channels(self, value: int | str) -> int:
        """Return a number of channels, scaled where the network is a scaled one."""
        return self._size(value) if self.wider == 1.0 or value == CLASSES else rounded(int(value) * self.wider)

    def _convolution(
        self,
        out: int | str,
        kernel: Any = 3,
        stride: int = 1,
        padding: Any = None,
        groups: int = 1,
        dilation: int = 1,
        bias: bool = True,
    ) -> None:
        sides = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
        margins = (padding, padding) if isinstance(padding, int) else None if padding is None else tuple(padding)
        self.builder.convolution(
            self._size(out), sides, stride=stride, padding=margins, groups=groups, dilation=dilation, bias=bias
        )

    def _transposed(self, out: int, kernel: int = 2, stride: int = 2, bias: bool = True) -> None:
        self.builder.transposed(out, kernel, stride, bias)

    def _linear(self, out: int | str, bias: bool = True) -> None:
        self.builder.linear(self._size(out), bias)

    def _projection(self, out: int | str, bias: bool = True) -> None:
        self.builder.projection(self._size(out), bias)

    def _condition(self, width: int, out: int, tokens: int = 1, bias: bool = True) -> None:
        self.builder.condition(width, out, tokens, bias)

    def _attention(
        self, heads: int, window: int = 0, areas: int = 1, context: int | str = 0, values: int = 0, fused: bool = True
    ) -> None:
        tokens = self._saved_tensor(context)[0].positions if isinstance(context, str) else context
        self.builder.attention(heads, window=window, areas=areas, context=tokens, values=values, fused=fused)

    def _recurrent(self, kind: str, width: int) -> None:
        """A recurrent layer over the rows of the input as time steps."""
        if kind not in CELLS:
            raise PlanError("no recurrent layer is called", repr(kind)[:60], f"known: {', '.join(CELLS)}")
        self.builder.recurrent(kind, CELLS[kind], width)

    def _norm(self, out: str = "batch", channels: int = 0, trained: bool = True) -> None:
        if out == "fixed":
            self.builder.fixed_norm()
        elif out == "heads":
            self.builder.head_norm(channels)
        else:
            self.builder.norm(out, channels=channels, trained=trained)

    def _activation(self, out: str = "relu") -> None:
        self.builder.activation(out)

    def _gated_activation(self, out: str = "gelu") -> None:
        self.builder.gated_activation(out)

    def _table(self, out: int) -> None:
        self.builder.table(out)

    def _pool(
        self, kernel: int = 2, stride: int | None = None, padding: int = 0, kind: str = "maximum", ceil: bool = False
    ) -> None:
        self.builder.pool(kernel, stride or kernel, padding, maximum=kind == "maximum", ceil=ceil)

    def _upsample(self, out: int = 2, to: str = "") -> None:
        """An image enlarged by a factor, or to the size of a saved one."""
        shape = self.builder.shape
        after = self._saved_tensor(to)[0] if to else Shape(shape.channels, shape.height * out, shape.width * out)
        self.builder.upsample(after.height, after.width)

    def _focal_loss(self) -> None:
        if self.trains:
            self.builder.focal_loss()

    def _selection(self, out: int) -> None:
        self.builder.selected(out)

    def _regions(self, count: int, size: int, training: int = 0) -> None:
        self.builder.regions(training if training and self.trains else count, size)

    def _flatten(self, out: int = 0) -> None:
        """The image as features of the sample, or each of its squares of this side as features of one position."""
        shape = self.builder.shape
        height, width = (shape.height // out, shape.width // out) if out else (1, 1)
        self.builder.reshaped(Shape(shape.elements // max(height * width, 1), height, width))

    def _latents(self, channels: int = 4, factor: int = 8) -> None:
        """Latents in index of the image, made before the run."""
        shape = self.builder.shape
        self.builder.reshaped(Shape(channels, shape.height // factor, shape.width // factor))

    def _text(self, tokens: int, width: int) -> None:
        """Another input, the tokens of a text."""
        self.builder.started(Shape(width, tokens))

    def _save(self, out: str) -> None:
        self.saved[out] = (self.builder.shape, self.builder.tensor)

    def _saved_tensor(self, name: str) -> tuple[Shape, int]:
        if name not in self.saved:
            raise PlanError("nothing was saved under this name", repr(name), "put save: NAME further up")
        return self.saved[name]

    def _resume(self, out: str) -> None:
        self.builder.resume(*self._saved_tensor(out))

    def _narrow(self, out: int) -> None:
        """Some of the channels alone, of a tensor that stays as it is."""
        self.builder.narrowed(replace(self.builder.shape, channels=out))

    def _join(self, out: str) -> None:
        """The positions of a saved tensor behind those of this one."""
        shape, saved = self.builder.shape, self._saved_tensor(out)[0]
        if shape.channels != saved.channels:
            raise PlanError("streams of unlike widths cannot be joined", f"{shape} and {saved}")
        self.builder.join(saved)

    def _part(self, out: str) -> None:
        """As many positions as a saved tensor has, of a joined tensor that stays as it is."""
        saved = self._saved_tensor(out)[0]
        self.builder.narrowed(replace(saved, channels=self.builder.shape.channels))

    def _concatenate(self, out: str | list[str]) -> None:
        names = [out] if isinstance(out, str) else out
        self.builder.concatenate([self._saved_tensor(name)[0] for name in names])

    def _add(self, out: str) -> None:
        shape, saved = self.builder.shape, self._saved_tensor(out)[0]
        if shape != saved:
            raise PlanError("tensors of unlike shapes cannot be added", f"{shape} and {saved}")
        self.builder.add()

    def _residual(self, branch: Entries, shortcut: Entries | None = None) -> None:
        shape, tensor = self.builder.shape, self.builder.tensor
        self.read(branch)
        after, last = self.builder.shape, self.builder.tensor
        if shortcut:
            self.builder.resume(shape, tensor)
            self.read(shortcut)
        self.builder.resume(after, last)
        self.builder.add()

    def _parallel(self, out: list[Entries]) -> None:
        """Several arms from one tensor, whose channels are concatenated."""
        shape, tensor = self.builder.shape, self.builder.tensor
        ends = []
        for branch in out:
            self.builder.resume(shape, tensor)
            self.read(branch)
            ends.append(self.builder.shape)
        self.builder.concatenate(ends[:-1])

    def _aside(self, out: Entries) -> None:
        """Layers whose result leaves the network here."""
        shape, tensor = self.builder.shape, self.builder.tensor
        self.read(out)
        self.builder.resume(shape, tensor)

    def _shared(self, tensors: list[str], layers: Entries) -> None:
        """Layers with one set of weights that read several saved tensors; their results leave the network here."""
        shape, tensor = self.builder.shape, self.builder.tensor
        for index, name in enumerate(tensors):
            self._resume(name)
            with self.builder.shared() if index else nullcontext():
                self.read(layers)
        self.builder.resume(shape, tensor)

    def _gate(self, inner: int, activation: str = "relu", gate: str = "sigmoid") -> None:
        """Factors for all channels from their means (Hu et al. 2018)."""
        shape, tensor = self.builder.shape, self.builder.tensor
        squeezed = {"conv": {"out": inner, "kernel": 1}}, {"activation": activation}
        self.read(["global_pool", *squeezed, {"conv": {"out": shape.channels, "kernel": 1}}, {"activation": gate}])
        self.builder.resume(shape, tensor)
        self.builder.gated()

    def _frozen(self, out: Entries) -> None:
        """Layers that run forward alone, of a part that is not trained."""
        with self.builder.frozen():
            self.read(out)

    def _in_training(self, out: Entries) -> None:
        """Layers that training alone has."""
        if self.trains:
            self.read(out)

    def _repeat(self, count: int, layers: Entries) -> None:
        for _ in range(count):
            self.read(layers)

    def _stages(self, block: str | list[str], depths: list[int], widths: list[int], **options: Any) -> None:
        """Stages of equal blocks, the first of each with the stage's stride; lists give a value for each stage."""
        strides = options.pop("strides", [1] * len(depths))
        for index, depth in enumerate(depths):
            branch_options = {
                name: value[index] if isinstance(value, list) else value for name, value in options.items()
            }
            name = block[index] if isinstance(block, list) else block
            width = self._channels(widths[index])
            for number in range(math.ceil(depth * self.deeper)):
                stride = {"stride": strides[index]} if number == 0 and strides[index] > 1 else {}
                self.read([{name: {"width": width, **branch_options, **stride}}])

    def _scaled(self, layers: Entries, width: float = 1.0, depth: float = 1.0) -> None:
        """A network with more channels and blocks than the one listed."""
        self.wider, self.deeper = width, depth
        self.read(layers)
        self.wider, self.deeper = 1.0, 1.0


def _as_width(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a block: what stands behind its name alone is its width."""
    return {"width": options["out"]} if set(options) == {"out"} else options


def _entry(entry: object) -> tuple[str, dict[str, Any]]:
    """Return name and options: ``relu``, ``linear: 10`` and ``conv: {out: 64}`` are all entries."""
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, dict) or len(entry) != 1:
        raise PlanError("not a layer", repr(entry)[:60], "write a name, or one name with its options")
    name, options = next(iter(entry.items()))
    return str(name), dict(options) if isinstance(options, dict) else {"out": options}
