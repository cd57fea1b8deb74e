"""Blocks whose stages work on a part of the channels (Wang et al. 2019, CSPNet), and detectors made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries, conv_norm

_LEVELS = (
    "level 3",
    "level 4",
    "level 5",
)  # Saved results, an eighth, a sixteenth and a thirty-second as wide as the image
_BINS = 16  # Places between which the side of a box is spread (Li et al. 2020, distribution focal loss)
_ANCHORS, _BOX = 3, 5  # Boxes at a position, and what is said of each beside its classes


def _conv(out: int, kernel: int = 1, stride: int = 1, padding: int | None = None) -> Entries:
    return conv_norm(out, kernel, stride, activation="silu", padding=padding)


def _narrow_blocks(width: int, first: int, shortcut: bool) -> Entries:
    branch = [*_conv(width, first), *_conv(width, 3)]
    return [{"residual": {"branch": branch}}] if shortcut else branch


def cross_stage(_channels: int, width: int, depth: int, *, shortcut: bool = True) -> Entries:
    """Residual blocks beside a convolution, each of half of the channels (C3 of YOLOv5).

    Args:
        depth: blocks.
        shortcut: whether they add their input.
    """
    half = width // 2
    blocks = [entry for _ in range(depth) for entry in _narrow_blocks(half, 1, shortcut)]
    stage = [{"save": "stage"}, *_conv(half), *blocks, {"save": "blocks"}]
    return [*stage, {"resume": "stage"}, *_conv(half), {"concat": "blocks"}, *_conv(width)]


def split_stage(_channels: int, width: int, depth: int, *, shortcut: bool = True) -> Entries:
    """Residual blocks of half of the channels, the results of all of which stand beside each other (C2f of YOLOv8).

    Args:
        depth: blocks.
        shortcut: whether they add their input.
    """
    half, names = width // 2, ["split", *(f"block {number}" for number in range(depth - 1))]
    entries: Entries = [*_conv(2 * half), {"save": "split"}, {"narrow": half}]
    for name in (*names[1:], ""):
        entries += [*_narrow_blocks(half, 3, shortcut), *([{"save": name}] if name else [])]
    return [*entries, {"concat": names}, *_conv(width)]


def spatial_pooling(in_channels: int, width: int, kernel: int = 5) -> Entries:
    """Maxima over windows of three sizes beside the image itself (He et al. 2015; SPPF of YOLOv5)."""
    names = ["pooled 0", "pooled 1", "pooled 2"]
    entries = _conv(in_channels // 2)
    for name in names:
        entries += [{"save": name}, {"pool": {"kernel": kernel, "stride": 1, "padding": kernel // 2}}]
    return [*entries, {"concat": names}, *_conv(width)]


def _backbone_and_neck(stage: str, widths: list[int], depths: list[int], *, narrows: bool) -> Entries:
    """A backbone, and a neck that takes its levels up and down again; saves the three that boxes are found in.

    Args:
        stage: block of each stage.
        widths: channels of the five halvings of the image.
        depths: blocks of the four stages of the backbone.
        narrows: whether a 1x1 convolution stands before each enlargement.
    """

    def stage_of(width: int, depth: int, *, shortcut: bool = False) -> Entries:
        return [{stage: {"width": width, "depth": depth, "shortcut": shortcut}}]

    entries: Entries = []
    for width, depth, name in zip(widths[1:], depths, ("", *_LEVELS), strict=True):
        entries += [*_conv(width, 3, 2), *stage_of(width, depth, shortcut=True)]
        entries += [{"save": name}] if name in _LEVELS[:2] else []
    entries.append({"spatial_pooling": {"width": widths[-1]}})
    for level, width in ((1, widths[3]), (0, widths[2])):
        entries += [*(_conv(width) if narrows else []), {"save": f"above {level}"}]
        entries += [{"upsample": 2}, {"concat": _LEVELS[level]}, *stage_of(width, depths[0])]
    entries.append({"save": _LEVELS[0]})
    for level, width in ((1, widths[3]), (2, widths[4])):
        entries += [*_conv(widths[level + 1], 3, 2), {"concat": f"above {level - 1}"}]
        entries += [*stage_of(width, depths[0]), {"save": _LEVELS[level]}]
    return entries


def _sizes(width: float, depth: float, most: int, blocks: list[int]) -> tuple[list[int], list[int]]:
    """Return channels, in multiples of 8, and blocks of a detector that is wider and deeper than the one listed."""
    widths = [math.ceil(min(channels, most) * width / 8) * 8 for channels in (64, 128, 256, 512, 1024)]
    return widths, [max(round(count * depth), 1) for count in blocks]


def yolo_v5(_channels: int, width: float, depth: float) -> Entries:
    """YOLOv5: three anchors at every position of three levels.

    Args:
        width: channels over those of the large one.
        depth: blocks over those of the large one.
    """
    widths, depths = _sizes(width, depth, 1024, [3, 6, 9, 3])
    entries = [*_conv(widths[0], 6, 2, 2), *_backbone_and_neck("cross_stage", widths, depths, narrows=True)]
    results = [{"aside": [{"conv": {"out": out, "kernel": 1}}]} for out in (f"{_ANCHORS} classes", _ANCHORS * _BOX)]
    return [*entries, *(entry for level in _LEVELS for entry in ({"resume": level}, *results))]


def yolo_v8(_channels: int, width: float, depth: float, most: int, scores: int = 80) -> Entries:
    """YOLOv8: boxes without anchors at every position of three levels, each side as a distribution.

    Args:
        width: channels over those of the large one.
        depth: blocks over those of the large one.
        most: channels before they are multiplied.
        scores: least channels before the classes.
    """
    widths, depths = _sizes(width, depth, most, [3, 6, 6, 3])
    entries = [*_conv(widths[0], 3, 2), *_backbone_and_neck("split_stage", widths, depths, narrows=False)]
    boxes, classes = max(widths[2] // 4, 4 * _BINS), max(widths[2], scores)
    for level in _LEVELS:
        entries.append({"resume": level})
        for inner, out in ((boxes, 4 * _BINS), (classes, "classes")):
            entries.append({"aside": [*_conv(inner, 3), *_conv(inner, 3), {"conv": {"out": out, "kernel": 1}}]})
    return [*entries, {"frozen": [{"table": _BINS}]}]


CROSS_STAGE_BLOCKS: Mapping[str, Block] = {
    "cross_stage": cross_stage,
    "split_stage": split_stage,
    "spatial_pooling": spatial_pooling,
    "yolo_v5": yolo_v5,
    "yolo_v8": yolo_v8,
}
