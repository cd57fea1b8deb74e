"""Blocks of networks that give a value for every pixel, from images of several widths."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries, conv_norm
from capacity_tui.engine.models.networks.composite_blocks import residual

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
