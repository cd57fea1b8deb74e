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
_HEAD = 64  # Channels of a head of attention
_AREA_HEAD = 32  # Channels of a head of attention within areas
_ANCHORS, _BOX = 3, 5  # Boxes at a position, and what is said of each beside its classes


def silu_convolution(out: int, kernel: int = 1, stride: int = 1, padding: int | None = None) -> Entries:
    """A convolution without bias, batch normalization and SiLU."""
    return conv_norm(out, kernel, stride, activation="silu", padding=padding)


def _narrow_blocks(width: int, first: int, shortcut: bool, share: float = 1.0) -> Entries:
    branch = [*silu_convolution(int(width * share), first), *silu_convolution(width, 3)]
    return [{"residual": {"branch": branch}}] if shortcut else branch


def cross_stage(_channels: int, width: int, depth: int, *, shortcut: bool = True, first: int = 1) -> Entries:
    """Residual blocks beside a convolution, each of half of the channels (C3 of YOLOv5, C3k of YOLO11).

    Args:
        depth: blocks.
        shortcut: whether they add their input.
        first: side of the windows of the first convolution of a block.
    """
    half = width // 2
    blocks = [entry for _ in range(depth) for entry in _narrow_blocks(half, first, shortcut)]
    stage = [{"save": "stage"}, *silu_convolution(half), *blocks, {"save": "blocks"}]
    return [*stage, {"resume": "stage"}, *silu_convolution(half), {"concat": "blocks"}, *silu_convolution(width)]


def split_stage(
    _channels: int,
    width: int,
    depth: int,
    *,
    shortcut: bool = True,
    share: float = 0.5,
    inner: float = 1.0,
    nested: int = 0,
) -> Entries:
    """Blocks of a part of the channels, all of whose results stand beside each other (C2f of YOLOv8, C3k2 of YOLO11).

    Args:
        depth: blocks.
        shortcut: whether they add their input.
        share: part of the channels.
        inner: part of those between the two convolutions of a block.
        nested: residual blocks of the cross-stage block that stands for each; 0 where each is one residual block.
    """
    part = int(width * share)
    block = _narrow_blocks(part, 3, shortcut, inner)
    if nested:
        block = [{"cross_stage": {"width": part, "depth": nested, "shortcut": shortcut, "first": 3}}]
    return split_blocks(width, part, [block] * depth)


def split_blocks(width: int, part: int, blocks: list[Entries], out: int = 0) -> Entries:
    """Return blocks of a part of the channels, all of whose results stand beside each other and are joined.

    Args:
        part: channels that they are of.
        out: channels before them, twice the part unless given.
    """
    names = ["split", *(f"block {number}" for number in range(len(blocks) - 1))]
    entries: Entries = [*silu_convolution(out or 2 * part), {"save": "split"}, {"narrow": part}]
    for block, name in zip(blocks, (*names[1:], ""), strict=True):
        entries += [*block, *([{"save": name}] if name else [])]
    return [*entries, {"concat": names}, *silu_convolution(width)]


def attention_stage(_channels: int, width: int, depth: int) -> Entries:
    """Attention over half of the channels, with half as many queries and keys as values (C2PSA of YOLO11)."""
    half = width // 2
    positions = [{"resume": "packed"}, {"narrow": half}, *conv_norm(half, 3, groups=half), {"add": "attended"}]
    attention = [{"attention": {"heads": max(half // _HEAD, 1), "values": half}}, {"save": "attended"}]
    looking = [*conv_norm(2 * half, 1), {"save": "packed"}, *attention, *positions, *conv_norm(half, 1)]
    block = [
        {"residual": {"branch": looking}},
        {"residual": {"branch": [*silu_convolution(2 * half), *conv_norm(half, 1)]}},
    ]
    entries = [
        *silu_convolution(2 * half),
        {"save": "split"},
        {"narrow": half},
        *(entry for _ in range(depth) for entry in block),
    ]
    return [
        *entries,
        {"save": "looked"},
        {"resume": "split"},
        {"narrow": half},
        {"concat": "looked"},
        *silu_convolution(width),
    ]


def area_stage(
    _channels: int, width: int, depth: int, *, areas: int = 0, ratio: float = 2.0, scaled: bool = False
) -> Entries:
    """Blocks of half of the channels, all of whose results stand beside each other (Tian et al. 2025, YOLO12).

    Args:
        depth: pairs of blocks with attention, or cross-stage blocks.
        areas: parts of the image within which positions attend to each other; 0 for cross-stage blocks.
        ratio: width of the feed-forward over that of a position.
        scaled: whether the result, by a trained factor of each channel, is added to what stands before it.
    """
    half, names = width // 2, [f"area {number}" for number in range(depth)]
    positions = [{"resume": "packed"}, {"narrow": half}, *conv_norm(half, 7, groups=half), {"add": "attended"}]
    attention = {"attention": {"heads": half // _AREA_HEAD, "areas": areas, "fused": False}}
    looking = [*conv_norm(3 * half, 1), {"save": "packed"}, attention, {"save": "attended"}]
    looking += [*positions, *conv_norm(half, 1)]
    inside = [*silu_convolution(int(ratio * half)), *conv_norm(half, 1)]
    pair = [{"residual": {"branch": looking}}, {"residual": {"branch": inside}}] * 2
    block = pair if areas else [{"cross_stage": {"width": half, "depth": 2, "first": 3}}]
    entries = silu_convolution(half)
    for name in names:
        entries += [{"save": name}, *block]
    entries += [{"concat": names}, *silu_convolution(width)]
    return [{"residual": {"branch": [*entries, "channel_scale"]}}] if scaled else entries


def spatial_pooling(in_channels: int, width: int, kernel: int = 5) -> Entries:
    """Maxima over windows of three sizes beside the image itself (He et al. 2015; SPPF of YOLOv5)."""
    names = ["pooled 0", "pooled 1", "pooled 2"]
    entries = silu_convolution(in_channels // 2)
    for name in names:
        entries += [{"save": name}, {"pool": {"kernel": kernel, "stride": 1, "padding": kernel // 2}}]
    return [*entries, {"concat": names}, *silu_convolution(width)]


def backbone_and_neck(
    widths: list[int],
    backbone: list[Entries],
    neck: list[Entries],
    *,
    narrows: bool = False,
    halvings: list[Entries] | None = None,
) -> Entries:
    """A backbone, and a neck that takes its levels up and down again; saves the three that boxes are found in.

    Args:
        widths: channels of the five halvings of the image.
        backbone: the stage behind each halving but the first; the last one ends in what looks at the whole image.
        neck: the two stages on the way up, then the two on the way down.
        narrows: whether a 1x1 convolution stands before each enlargement.
        halvings: what halves the image before the four stages of the backbone and the last two of the neck, where that
            is no plain convolution.
    """
    plain = [silu_convolution(width, 3, 2) for width in (*widths[1:], *widths[2:4])]
    halving, entries = iter(halvings or plain), []
    for stage, name in zip(backbone, ("", *_LEVELS), strict=True):
        entries += [*next(halving), *stage, *([{"save": name}] if name in _LEVELS[:2] else [])]
    for level, width, stage in ((1, widths[3], neck[0]), (0, widths[2], neck[1])):
        entries += [*(silu_convolution(width) if narrows else []), {"save": f"above {level}"}]
        entries += [{"upsample": 2}, {"concat": _LEVELS[level]}, *stage]
    entries.append({"save": _LEVELS[0]})
    for level, stage in ((1, neck[2]), (2, neck[3])):
        entries += [*next(halving), {"concat": f"above {level - 1}"}, *stage, {"save": _LEVELS[level]}]
    return entries


def _alike(stage: str, widths: list[int], depths: list[int]) -> tuple[list[Entries], list[Entries]]:
    """Return the stages of a backbone and of a neck that are all of one block, with and without shortcuts."""

    def stage_of(width: int, depth: int, *, shortcut: bool) -> Entries:
        return [{stage: {"width": width, "depth": depth, "shortcut": shortcut}}]

    backbone = [stage_of(width, depth, shortcut=True) for width, depth in zip(widths[1:], depths, strict=True)]
    backbone[-1].append({"spatial_pooling": {"width": widths[-1]}})
    return backbone, [stage_of(widths[level], depths[0], shortcut=False) for level in (3, 2, 3, 4)]


def scaled_sizes(width: float, depth: float, most: int, blocks: list[int]) -> tuple[list[int], list[int]]:
    """Return channels, in multiples of 8, and blocks of a detector that is wider and deeper than the one listed."""
    widths = [math.ceil(min(channels, most) * width / 8) * 8 for channels in (64, 128, 256, 512, 1024)]
    return widths, [max(round(count * depth), 1) for count in blocks]


def yolo_v5(_channels: int, width: float, depth: float) -> Entries:
    """YOLOv5: three anchors at every position of three levels.

    Args:
        width: channels over those of the large one.
        depth: blocks over those of the large one.
    """
    widths, depths = scaled_sizes(width, depth, 1024, [3, 6, 9, 3])
    entries = [
        *silu_convolution(widths[0], 6, 2, 2),
        *backbone_and_neck(widths, *_alike("cross_stage", widths, depths), narrows=True),
    ]
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
    widths, depths = scaled_sizes(width, depth, most, [3, 6, 6, 3])
    entries = [
        *silu_convolution(widths[0], 3, 2),
        *backbone_and_neck(widths, *_alike("split_stage", widths, depths), narrows=False),
    ]
    inner = max(widths[2], scores)
    return [
        *entries,
        *boxes_of_levels(widths, [[*silu_convolution(inner, 3), *silu_convolution(inner, 3)]] * len(_LEVELS)),
    ]


def yolo_11(
    _channels: int, width: float, depth: float, most: int, scores: int = 80, *, nested: bool = False
) -> Entries:
    """YOLO11: attention over the smallest image, and depthwise convolutions before the classes.

    Args:
        width: channels over those of the large one.
        depth: blocks over those of the large one.
        most: channels before they are multiplied.
        scores: least channels before the classes.
        nested: whether every stage is of cross-stage blocks, as in the medium one and larger ones.
    """
    widths, (count,) = scaled_sizes(width, depth, most, [2])

    def stage_of(out: int, share: float = 0.5, *, is_nested: bool = nested) -> Entries:
        return [{"split_stage": {"width": out, "depth": count, "share": share, "inner": 0.5, "nested": 2 * is_nested}}]

    backbone = [stage_of(widths[2], 0.25), stage_of(widths[3], 0.25)]
    backbone += [stage_of(out, is_nested=True) for out in widths[3:]]
    backbone[-1] += [
        {"spatial_pooling": {"width": widths[4]}},
        {"attention_stage": {"width": widths[4], "depth": count}},
    ]
    neck = [stage_of(widths[3]), stage_of(widths[2]), stage_of(widths[3]), stage_of(widths[4], is_nested=True)]
    entries = [*silu_convolution(widths[0], 3, 2), *backbone_and_neck(widths, backbone, neck, narrows=False)]
    return [*entries, *boxes_of_levels(widths, scored_levels(widths, scores))]


def yolo_12(
    _channels: int,
    width: float,
    depth: float,
    most: int,
    scores: int = 80,
    *,
    nested: bool = False,
    large: bool = False,
) -> Entries:
    """YOLO12: attention within areas of the two smaller images in place of convolutions.

    Args:
        width: channels over those of the large one.
        depth: blocks over those of the large one.
        most: channels before they are multiplied.
        scores: least channels before the classes.
        nested: whether every stage of convolutions is of cross-stage blocks, as in the medium one and larger ones.
        large: whether feed-forwards are narrower and stages with attention scaled, as in the two largest ones.
    """
    widths, (count, blocks) = scaled_sizes(width, depth, most, [2, 4])
    attending = {"ratio": 1.2, "scaled": True} if large else {}
    split = {"depth": count, "inner": 0.5}
    backbone: list[Entries] = [
        [{"split_stage": {"width": out, "share": 0.25, "nested": 2 * nested, **split}}] for out in widths[2:4]
    ]
    backbone += [
        [{"area_stage": {"width": out, "depth": blocks, "areas": areas, **attending}}]
        for out, areas in ((widths[3], 4), (widths[4], 1))
    ]
    neck: list[Entries] = [[{"area_stage": {"width": widths[level], "depth": count}}] for level in (3, 2, 3)]
    neck.append([{"split_stage": {"width": widths[4], "nested": 2, **split}}])
    entries = [*silu_convolution(widths[0], 3, 2), *backbone_and_neck(widths, backbone, neck, narrows=False)]
    return [*entries, *boxes_of_levels(widths, scored_levels(widths, scores))]


def scored_levels(widths: list[int], scores: int) -> list[Entries]:
    """Return what stands before the classes of each level, of depthwise convolutions."""
    inner = max(widths[2], scores)
    return [
        [
            *depthwise_convolution(channels),
            *silu_convolution(inner),
            *depthwise_convolution(inner),
            *silu_convolution(inner),
        ]
        for channels in widths[2:]
    ]


def depthwise_convolution(channels: int) -> Entries:
    """The same of each channel by itself, in windows of 3x3."""
    return conv_norm(channels, 3, groups=channels, activation="silu")


def boxes_of_levels(widths: list[int], scored: list[Entries]) -> Entries:
    """Boxes at every position of three levels, each side as a distribution, and their classes.

    Args:
        widths: channels of the five halvings of the image.
        scored: what stands before the classes of each level.
    """
    inner = max(widths[2] // 4, 4 * _BINS)
    entries: Entries = []
    for level, before in zip(_LEVELS, scored, strict=True):
        entries.append({"resume": level})
        for layers, out in (
            ([*silu_convolution(inner, 3), *silu_convolution(inner, 3)], 4 * _BINS),
            (before, "classes"),
        ):
            entries.append({"aside": [*layers, {"conv": {"out": out, "kernel": 1}}]})
    return [*entries, {"frozen": [{"table": _BINS}]}]


CROSS_STAGE_BLOCKS: Mapping[str, Block] = {
    "cross_stage": cross_stage,
    "split_stage": split_stage,
    "attention_stage": attention_stage,
    "area_stage": area_stage,
    "spatial_pooling": spatial_pooling,
    "yolo_v5": yolo_v5,
    "yolo_v8": yolo_v8,
    "yolo_11": yolo_11,
    "yolo_12": yolo_12,
}
