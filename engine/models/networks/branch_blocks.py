"""Blocks whose branches stand side by side: merged after training, or of images of several widths, and detectors."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries, conv_norm
from capacity_tui.engine.models.networks.composite_blocks import residual
from capacity_tui.engine.models.networks.cross_stage_blocks import (
    backbone_and_neck,
    boxes_of_levels,
    depthwise_convolution,
    scaled_sizes,
    scored_levels,
    silu_convolution,
    split_blocks,
)

_MEAN = {"pool": {"kernel": 2, "stride": 1, "kind": "mean"}}


def merged_convolution(_channels: int, width: int, kernel: int = 3, other: int = 1, groups: int = 1) -> Entries:
    """A convolution that a smaller one, of windows of ``other``, stands beside in training (Ding et al. 2021)."""
    smaller = [{"save": "larger"}, {"resume": "merged"}, *conv_norm(width, other, groups=groups), {"add": "larger"}]
    larger = conv_norm(width, kernel, groups=groups)
    return [{"save": "merged"}, *larger, {"in_training": smaller}, {"activation": "silu"}]


def aggregation_stage(_channels: int, width: int, outer: int, inner: int, depth: int) -> Entries:
    """Two branches one after the other, whose results stand beside each other (Wang et al. 2024, YOLOv9).

    Args:
        outer: channels before them.
        inner: channels of each branch.
        depth: blocks of each branch; 0 for a convolution alone.
    """
    half = inner // 2
    block = {"residual": {"branch": [{"merged_convolution": {"width": half}}, *silu_convolution(half, 3)]}}
    stage: Entries = [{"save": "stage"}, *silu_convolution(half), {"repeat": {"count": depth, "layers": [block]}}]
    stage += [{"save": "blocks"}, {"resume": "stage"}, *silu_convolution(half), {"concat": "blocks"}]
    branch = [*(stage + silu_convolution(inner) if depth else []), *silu_convolution(inner, 3)]
    return split_blocks(width, outer // 2, [branch, branch], outer)


def mean_halving(channels: int, width: int, *, split: bool = False) -> Entries:
    """Means of neighbours and a convolution with a stride; where ``split``, beside maxima of the other half."""
    if not split:
        return [_MEAN, *silu_convolution(width, 3, 2, 1)]
    other = [
        {"narrow": channels // 2},
        {"pool": {"kernel": 3, "stride": 2, "padding": 1}},
        *silu_convolution(width // 2),
    ]
    first = [{"narrow": channels // 2}, *silu_convolution(width // 2, 3, 2, 1)]
    return [
        _MEAN,
        {"save": "means"},
        *first,
        {"save": "convolved"},
        {"resume": "means"},
        *other,
        {"concat": "convolved"},
    ]


def yolo_v9(
    _channels: int,
    widths: list[int],
    stages: list[int],
    outer: list[int],
    neck: list[int],
    depth: int,
    scores: int = 80,
    *,
    plain: bool = False,
    split: bool = False,
) -> Entries:
    """YOLOv9 without what guides its training from aside: stages of two branches.

    Args:
        widths: channels of the five halvings of the image.
        stages: channels of the stages of the backbone, then of the neck's largest.
        outer: channels before the branches of each of these.
        neck: channels of its two halvings.
        depth: blocks of each branch.
        scores: least channels before the classes.
        plain: whether the first stage has convolutions alone.
        split: whether the channels are halved where the image is.
    """

    def stage_of(level: int, blocks: int = depth) -> Entries:
        sizes = {"width": stages[level], "outer": outer[level], "inner": outer[level] // 2, "depth": blocks}
        return [{"aggregation_stage": sizes}]

    backbone = [stage_of(0, 0 if plain else depth), *(stage_of(level) for level in (1, 2, 3))]
    backbone[-1].append({"spatial_pooling": {"width": stages[3]}})
    means: list[Entries] = [[{"mean_halving": {"width": width, "split": split}}] for width in (*widths[2:], *neck)]
    halvings = [silu_convolution(widths[1], 3, 2), *means]
    necks = [stage_of(level) for level in (2, 4, 2, 3)]
    inner = max(stages[4], scores)
    scored = [[*silu_convolution(inner, 3), *silu_convolution(inner, 3)]] * 3
    entries = [*silu_convolution(widths[0], 3, 2), *backbone_and_neck(widths, backbone, necks, halvings=halvings)]
    return [*entries, *boxes_of_levels([0, 0, stages[4]], scored)]


def inverted_stage(_channels: int, width: int, depth: int, *, large: bool = False) -> Entries:
    """Blocks of depthwise convolutions of half the channels, ``large`` ones of 7x7 (Wang et al. 2024, YOLOv10)."""
    half = width // 2
    wide = {"merged_convolution": {"width": width, "kernel": 7, "other": 3, "groups": width}}
    middle = [wide] if large else depthwise_convolution(width)
    inside = [*depthwise_convolution(half), *silu_convolution(width), *middle, *silu_convolution(half)]
    block = [{"residual": {"branch": [*inside, *depthwise_convolution(half)]}}]
    return split_blocks(width, half, [block] * depth)


def yolo_v10(
    _channels: int, width: float, depth: float, most: int, inverted: list[int], scores: int = 80, *, large: bool = False
) -> Entries:
    """YOLOv10: one box for each object, so that none has to be removed; in training a second head gives several.

    Args:
        width: channels over those of the large one.
        depth: blocks over those of the large one.
        most: channels before they are multiplied.
        inverted: which of the four stages of the backbone and the four of the neck are of depthwise convolutions.
        scores: least channels before the classes.
        large: whether some of these have windows of 7x7.
    """
    widths, depths = scaled_sizes(width, depth, most, [3, 6, 6, 3])
    outs, counts = [*widths[1:], widths[3], widths[2], *widths[3:]], [*depths, *[depths[0]] * 4]

    def stage_of(index: int) -> Entries:
        sizes = {"width": outs[index], "depth": counts[index]}
        if index in inverted:
            return [{"inverted_stage": {**sizes, "large": large}}]
        return [{"split_stage": {**sizes, "shortcut": index < len(depths)}}]

    def halving(out: int) -> Entries:
        return [*silu_convolution(out), *conv_norm(out, 3, 2, groups=out)]

    stages = [stage_of(index) for index in range(len(outs))]
    looks = [{"spatial_pooling": {"width": widths[4]}}, {"attention_stage": {"width": widths[4], "depth": 1}}]
    stages[3] += looks
    plain = [silu_convolution(out, 3, 2) for out in (*widths[1:3], widths[2])]
    halvings = [*plain[:2], *map(halving, widths[3:]), plain[2], halving(widths[3])]
    *boxes, places = boxes_of_levels(widths, scored_levels(widths, scores))
    entries = [
        *silu_convolution(widths[0], 3, 2),
        *backbone_and_neck(widths, stages[:4], stages[4:], halvings=halvings),
    ]
    return [*entries, *boxes, {"in_training": boxes}, places]


MERGED_BLOCKS: Mapping[str, Block] = {
    "merged_convolution": merged_convolution,
    "aggregation_stage": aggregation_stage,
    "mean_halving": mean_halving,
    "yolo_v9": yolo_v9,
    "inverted_stage": inverted_stage,
    "yolo_v10": yolo_v10,
}


_RATIO = 4  # Width of a feed-forward over that of a position


def reduced_attention_block(_channels: int, width: int, heads: int, reduction: int = 1) -> Entries:
    """Attention to an image that a convolution narrows, and a feed-forward with a depthwise one (Xie et al. 2021).

    Args:
        reduction: side of the squares of positions that one of the narrower image stands for.
    """
    narrow = {"conv": {"out": width, "kernel": reduction, "stride": reduction, "padding": 0}}
    reduced: Entries = [
        {"save": "seen"},
        narrow,
        {"norm": "layer"},
        {"project": 2 * width},
        {"save": "reduced"},
        {"resume": "seen"},
        {"project": width},
        {"attention": {"heads": heads, "context": "reduced"}},
    ]
    whole: Entries = [{"project": 3 * width}, {"attention": {"heads": heads}}]
    return [
        *residual({"norm": "layer"}, *(reduced if reduction > 1 else whole), {"project": width}),
        *residual(
            {"norm": "layer"},
            {"project": _RATIO * width},
            {"conv": {"out": _RATIO * width, "groups": _RATIO * width}},
            {"activation": "gelu"},
            {"project": width},
        ),
    ]


def segformer(
    _channels: int, widths: list[int], depths: list[int], heads: list[int], reductions: list[int], inner: int
) -> Entries:
    """Four stages of attention, whose results are brought to one size and width (Xie et al. 2021).

    Args:
        widths: channels of each stage.
        depths: blocks of each stage.
        heads: of attention, of each stage.
        reductions: side of the squares that stand for one position in attention, of each stage.
        inner: channels to which all stages are brought.
    """
    entries: Entries = []
    for index, (width, depth, count, reduction) in enumerate(zip(widths, depths, heads, reductions, strict=True)):
        kernel, stride = (3, 2) if index else (7, 4)
        block = {"reduced_attention_block": {"width": width, "heads": count, "reduction": reduction}}
        entries += [{"conv": {"out": width, "kernel": kernel, "stride": stride}}, {"norm": "layer"}]
        entries += [{"repeat": {"count": depth, "layers": [block]}}, {"norm": "layer"}, {"save": f"stage {index}"}]
    names = [f"level {index}" for index in range(len(widths))]
    for index, name in enumerate(names):
        entries += [{"resume": f"stage {index}"}, {"project": inner}]
        entries += [*([{"upsample": {"to": names[0]}}] if index else []), {"save": name}]
    return [
        *entries,
        {"concat": names[:-1]},
        *conv_norm(inner, 1, activation="relu"),
        {"conv": {"out": "classes", "kernel": 1}},
    ]


def dilated_pooling(_channels: int, width: int, dilations: list[int]) -> Entries:
    """Convolutions with windows of several sizes, and the mean of the image, side by side (Chen et al. 2017).

    Args:
        width: channels of each.
        dilations: distances of the points of a 3x3 window.
    """
    mean = ["global_pool", *conv_norm(width, 1, activation="relu"), {"upsample": {"to": "pooled"}}]
    arms = [conv_norm(width, 1, activation="relu")]
    arms += [conv_norm(width, 3, activation="relu", dilation=dilation) for dilation in dilations]
    return [{"save": "pooled"}, {"parallel": [*arms, mean]}, *conv_norm(width, 1, activation="relu")]


SEGMENTATION_BLOCKS: Mapping[str, Block] = {
    "reduced_attention_block": reduced_attention_block,
    "segformer": segformer,
    "dilated_pooling": dilated_pooling,
}
