"""Larger blocks: those with attention, the networks of diffusion made of them, and the parts that detectors share.

Levels of detectors are saved tensors: ``c2`` to ``c5`` of the backbone, ``p2`` and on of a pyramid, each half as
wide as the last.
"""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries


def residual(*branch: object) -> Entries:
    """Layers whose result is added to what stands before them."""
    return [{"residual": {"branch": list(branch)}}]


def transformer_block(
    in_channels: int,
    width: int,
    heads: int,
    ratio: float = 4.0,
    window: int = 0,
    *,
    fused: bool = True,
    tables: int = 0,
    stride: int = 1,
) -> Entries:
    """Attention over all positions, or within windows, and a feed-forward, each behind a layer normalization.

    Args:
        ratio: width of the feed-forward over that of a position.
        window: side of the windows; 0 for the whole image.
        fused: whether scores stay inside one kernel.
        tables: trained biases of attention.
        stride: 2 where four positions become one first (Liu et al. 2021).
    """
    merging = [
        {"norm": {"out": "layer", "channels": 4 * in_channels}},
        {"conv": {"out": width, "kernel": stride, "stride": stride, "padding": 0, "bias": False}},
    ]
    return [
        *(merging if stride > 1 else []),
        *residual(
            {"norm": "layer"},
            {"project": 3 * width},
            {"attention": {"heads": heads, "window": window, "fused": fused}},
            *([{"table": tables}] if tables else []),
            {"project": width},
        ),
        *residual({"norm": "layer"}, {"project": round(ratio * width)}, {"activation": "gelu"}, {"project": width}),
    ]


def swin_block(in_channels: int, width: int, heads: int, window: int = 7, stride: int = 1) -> Entries:
    """A transformer block within windows, every pair of positions of which has a bias a head (Liu et al. 2021)."""
    tables = (2 * window - 1) ** 2 * heads
    return transformer_block(in_channels, width, heads, window=window, fused=False, tables=tables, stride=stride)


def conditioned_block(_channels: int, width: int, heads: int, ratio: float = 4.0) -> Entries:
    """A transformer block whose norms a signal shifts and scales (Peebles and Xie 2023)."""
    modulated = [{"norm": {"out": "layer", "trained": False}}, {"activation": "modulation"}]
    return [
        {"condition": {"width": width, "out": 6 * width}},
        *residual(
            *modulated,
            {"project": 3 * width},
            {"attention": {"heads": heads}},
            {"project": width},
            {"activation": "modulation"},
        ),
        *residual(
            *modulated,
            {"project": round(ratio * width)},
            {"activation": "gelu"},
            {"project": width},
            {"activation": "modulation"},
        ),
    ]


def diffusion_block(in_channels: int, width: int, signal: int) -> Entries:
    """Two convolutions around a shortcut, between them a signal of time (Dhariwal and Nichol 2021)."""
    branch = [
        {"norm": "group"},
        {"activation": "silu"},
        {"conv": {"out": width}},
        *([{"condition": {"width": signal, "out": width}}, "shift"] if signal else []),
        {"norm": "group"},
        {"activation": "silu"},
        {"conv": {"out": width}},
    ]
    shortcut = [{"conv": {"out": width, "kernel": 1}}] if in_channels != width else None
    return [{"residual": {"branch": branch, "shortcut": shortcut}}]


def text_attention_blocks(
    _channels: int, width: int, head_width: int, depth: int, context: int, tokens: int = 77
) -> Entries:
    """Attention to the image itself and to a text, and a gated feed-forward, ``depth`` times (Rombach et al. 2022)."""
    heads = width // head_width
    block = [
        *residual(
            {"norm": "layer"},
            {"project": {"out": 3 * width, "bias": False}},
            {"attention": {"heads": heads}},
            {"project": width},
        ),
        *residual(
            {"norm": "layer"},
            {"project": {"out": width, "bias": False}},
            {"condition": {"width": context, "out": 2 * width, "tokens": tokens, "bias": False}},
            {"attention": {"heads": heads, "context": tokens}},
            {"project": width},
        ),
        *residual({"norm": "layer"}, {"project": 8 * width}, {"gated_activation": "gelu"}, {"project": width}),
    ]
    return residual(
        {"norm": "group"}, {"project": width}, {"repeat": {"count": depth, "layers": block}}, {"project": width}
    )


def diffusion_unet(
    in_channels: int,
    widths: list[int],
    depths: list[int],
    context: int,
    head_widths: list[int],
    blocks: int = 2,
    middle: int = 1,
    labels: int = 0,
) -> Entries:
    """The U-Net of latent diffusion: residual blocks, and attention to a text where the depth of a level asks for it.

    Args:
        widths: channels of each level, from the finest.
        depths: transformer blocks behind each residual block of a level; 0 for none.
        context: width of the text's tokens.
        head_widths: channels of a head, of each level.
        blocks: residual blocks of a level on the way down; one more on the way up.
        middle: transformer blocks in the middle.
        labels: width of further signals beside the time.
    """
    signal = 4 * widths[0]
    levels = list(zip(widths, depths, head_widths, strict=True))
    down: Entries = [
        {"condition": {"width": widths[0], "out": signal}},
        {"condition": {"width": signal, "out": signal}},
        *(
            [{"condition": {"width": labels, "out": signal}}, {"condition": {"width": signal, "out": signal}}]
            if labels
            else []
        ),
        {"conv": {"out": widths[0]}},
        {"save": "skip 0"},
    ]
    skips = ["skip 0"]
    for index, (width, depth, head) in enumerate(levels):
        for _ in range(blocks):
            down += _level(width, depth, head, context, signal)
            skips.append(f"skip {len(skips)}")
            down.append({"save": skips[-1]})
        if index + 1 < len(levels):
            skips.append(f"skip {len(skips)}")
            down += [{"conv": {"out": width, "stride": 2}}, {"save": skips[-1]}]
    width, _, head = levels[-1]
    inside = [
        {"diffusion_block": {"width": width, "signal": signal}},
        *_texts(width, middle, head, context),
        {"diffusion_block": {"width": width, "signal": signal}},
    ]
    up: Entries = []
    for index, (width, depth, head) in reversed(list(enumerate(levels))):
        for _ in range(blocks + 1):
            up += [{"concat": skips.pop()}, *_level(width, depth, head, context, signal)]
        if index:
            up += [{"upsample": 2}, {"conv": {"out": width}}]
    return [*down, *inside, *up, {"norm": "group"}, {"activation": "silu"}, {"conv": {"out": in_channels}}]


def _level(width: int, depth: int, head: int, context: int, signal: int) -> Entries:
    return [{"diffusion_block": {"width": width, "signal": signal}}, *_texts(width, depth, head, context)]


def _texts(width: int, depth: int, head: int, context: int) -> Entries:
    options = {"width": width, "head_width": head, "depth": depth, "context": context}
    return [{"text_attention_blocks": options}] if depth else []


def latent_encoder(_channels: int, widths: list[int], blocks: int = 2) -> Entries:
    """The encoder of an image to latents an eighth as wide, with attention in its middle (Rombach et al. 2022)."""
    entries: Entries = [{"conv": {"out": widths[0]}}]
    for index, width in enumerate(widths):
        entries += [{"diffusion_block": {"width": width, "signal": 0}}] * blocks
        if index + 1 < len(widths):
            entries.append({"conv": {"out": width, "stride": 2}})
    width = widths[-1]
    return [
        *entries,
        {"diffusion_block": {"width": width, "signal": 0}},
        *residual({"norm": "group"}, {"project": 3 * width}, {"attention": {"heads": 1}}, {"project": width}),
        {"diffusion_block": {"width": width, "signal": 0}},
        {"norm": "group"},
        {"activation": "silu"},
        {"conv": {"out": 8}},
        {"conv": {"out": 8, "kernel": 1}},
    ]


ATTENTION_BLOCKS: Mapping[str, Block] = {
    "transformer_block": transformer_block,
    "swin_block": swin_block,
    "conditioned_block": conditioned_block,
    "diffusion_block": diffusion_block,
    "text_attention_blocks": text_attention_blocks,
    "diffusion_unet": diffusion_unet,
    "latent_encoder": latent_encoder,
}


def detection_backbone(
    _channels: int, depths: list[int], groups: int = 1, group_width: int = 64, early: bool = False
) -> Entries:
    """A residual network with fixed normalization, whose stem and first stage are not trained; saves ``c2`` and on.

    Args:
        groups: of the 3x3 convolutions.
        group_width: channels of a group at 64 channels.
        early: whether the stride is in the first convolution of a block.
    """
    options = {"block": "bottleneck", "groups": groups, "group_width": group_width, "norm": "fixed", "early": early}
    stages: Entries = [
        {"stages": {"depths": [depth], "widths": [64 << index], "strides": [min(index + 1, 2)], **options}}
        for index, depth in enumerate(depths)
    ]
    entries: Entries = [{"frozen": [{"resnet_stem": {"norm": "fixed"}}, stages[0]]}, {"save": "c2"}]
    for index, stage in enumerate(stages[1:], 3):
        entries += [stage, {"save": f"c{index}"}]
    return entries


def feature_pyramid(_channels: int, levels: list[str], width: int = 256) -> Entries:
    """Saved levels from the largest, in one width, to each of which the next smaller is added (Lin et al. 2017)."""
    entries: Entries = []
    above = ""
    for level in reversed(levels):
        inner = f"inner {level}"
        entries += [{"resume": level}, {"conv": {"out": width, "kernel": 1}}, {"save": inner}]
        if above:
            entries += [{"resume": above}, {"upsample": {"to": inner}}, {"add": inner}, {"save": inner}]
        entries += [{"conv": {"out": width}}, {"save": level.replace("c", "p")}]
        above = inner
    return entries


def proposals(_channels: int, levels: list[str], width: int, anchors: int) -> Entries:
    """Score and shift boxes at every position of every level (Ren et al. 2015)."""
    head = [
        {"conv": {"out": width}},
        "activation",
        {"aside": [{"conv": {"out": anchors, "kernel": 1}}]},
        {"conv": {"out": 4 * anchors, "kernel": 1}},
    ]
    return [{"shared": {"tensors": levels, "layers": head}}]


def dense_boxes(_channels: int, levels: list[str], width: int, anchors: int, depth: int) -> Entries:
    """Classify and shift boxes everywhere on every level, after ``depth`` convolutions (Lin et al. 2018)."""
    tower = {"repeat": {"count": depth, "layers": [{"conv": {"out": width}}, "activation"]}}
    classes, boxes = ({"conv": {"out": out}} for out in (f"{anchors} classes", 4 * anchors))
    head = [{"aside": [tower, classes, "focal_loss"]}, tower, boxes]
    return [{"shared": {"tensors": levels, "layers": head}}]


def region_boxes(_channels: int, level: str, count: int, training: int, size: int = 7, width: int = 1024) -> Entries:
    """Classify and shift the boxes of regions, by two linear layers over each.

    Args:
        level: saved level that regions are cut from.
        training: regions of an image in training.
        size: points a side of a region.
    """
    return [
        {"resume": level},
        {"regions": {"count": count, "training": training, "size": size}},
        {"flatten": size},
        {"project": width},
        "activation",
        {"project": width},
        "activation",
        *box_results(width),
    ]


def stage_boxes(
    _channels: int,
    level: str,
    count: int,
    training: int,
    depth: int,
    size: int = 14,
    width: int = 512,
    early: bool = False,
) -> Entries:
    """Classify and shift the boxes of regions, by the last stage of the backbone over each; saves it as ``boxes``.

    Args:
        level: saved level that regions are cut from.
        training: regions of an image in training.
        depth: blocks of the stage.
        size: points a side of a region.
        width: a quarter of the stage's channels.
        early: whether the stride is in the first convolution of a block.
    """
    options = {
        "block": "bottleneck",
        "depths": [depth],
        "widths": [width],
        "strides": [2],
        "norm": "fixed",
        "early": early,
    }
    return [
        {"resume": level},
        {"regions": {"count": count, "training": training, "size": size}},
        {"stages": options},
        {"pool": {"kernel": size // 2, "kind": "mean"}},
        *box_results(4 * width),
    ]


def box_results(_channels: int) -> Entries:
    """Classes of each region, and a box for each of them."""
    return [{"aside": [{"project": "classes"}]}, {"project": "4 classes"}]


def region_masks(
    _channels: int, level: str, count: int, training: int, depth: int = 4, size: int = 14, width: int = 256
) -> Entries:
    """Draw a mask of each class inside regions (He et al. 2017).

    Args:
        level: saved level that regions are cut from.
        training: regions of an image in training.
        depth: convolutions before the mask.
        size: points a side of a region.
    """
    return [
        {"resume": level},
        {"regions": {"count": count, "training": training, "size": size}},
        {"repeat": {"count": depth, "layers": [{"conv": {"out": width}}, "activation"]}},
        {"transposed": {"out": width}},
        "activation",
        {"conv": {"out": "classes", "kernel": 1}},
    ]


DETECTION_BLOCKS: Mapping[str, Block] = {
    "detection_backbone": detection_backbone,
    "feature_pyramid": feature_pyramid,
    "proposals": proposals,
    "dense_boxes": dense_boxes,
    "region_boxes": region_boxes,
    "stage_boxes": stage_boxes,
    "region_masks": region_masks,
}
