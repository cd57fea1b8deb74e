"""Blocks with attention, and the networks of diffusion that are made of them."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries


def _residual(*branch: object) -> Entries:
    return [{"residual": {"branch": list(branch)}}]


def transformer_block(before: int, width: int, heads: int, ratio: float = 4.0, window: int = 0, *, fused: bool = True,
                      tables: int = 0, stride: int = 1) -> Entries:  # fmt: skip
    """Attention over all positions, or within windows, and a feed-forward, each behind a layer normalization.

    Args:
        before: channels before it.
        width: channels of a position.
        heads: heads of attention.
        ratio: width of the feed-forward over that of a position.
        window: side of the windows; 0 for the whole image.
        fused: whether scores stay inside one kernel.
        tables: trained biases of attention.
        stride: 2 where four positions become one first (Liu et al. 2021).
    """
    merging = [{"norm": {"out": "layer", "channels": 4 * before}},
               {"conv": {"out": width, "kernel": stride, "stride": stride, "padding": 0, "bias": False}}]  # fmt: skip
    return [
        *(merging if stride > 1 else []),
        *_residual(
            {"norm": "layer"},
            {"project": 3 * width},
            {"attention": {"heads": heads, "window": window, "fused": fused}},
            *([{"table": tables}] if tables else []),
            {"project": width},
        ),
        *_residual(
            {"norm": "layer"},
            {"project": round(ratio * width)},
            {"activation": "gelu"},
            {"project": width},
        ),
    ]


def swin_block(before: int, width: int, heads: int, window: int = 7, stride: int = 1) -> Entries:
    """A transformer block within windows, every pair of positions of which has a bias a head (Liu et al. 2021)."""
    tables = (2 * window - 1) ** 2 * heads
    return transformer_block(before, width, heads, window=window, fused=False, tables=tables, stride=stride)


def conditioned_block(before: int, width: int, heads: int, ratio: float = 4.0) -> Entries:
    """A transformer block whose norms a signal shifts and scales (Peebles and Xie 2023)."""
    del before
    modulated = [{"norm": {"out": "layer", "trained": False}}, {"activation": "modulation"}]
    return [
        {"condition": {"width": width, "out": 6 * width}},
        *_residual(
            *modulated,
            {"project": 3 * width},
            {"attention": {"heads": heads}},
            {"project": width},
            {"activation": "modulation"},
        ),
        *_residual(
            *modulated,
            {"project": round(ratio * width)},
            {"activation": "gelu"},
            {"project": width},
            {"activation": "modulation"},
        ),
    ]


def diffusion_block(before: int, width: int, signal: int) -> Entries:
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
    shortcut = [{"conv": {"out": width, "kernel": 1}}] if before != width else None
    return [{"residual": {"branch": branch, "shortcut": shortcut}}]


def text_attention_blocks(
    before: int, width: int, head_width: int, depth: int, context: int, tokens: int = 77
) -> Entries:
    """Attention to the image itself and to a text, and a gated feed-forward, ``depth`` times (Rombach et al. 2022)."""
    del before
    heads = width // head_width
    block = [
        *_residual(
            {"norm": "layer"},
            {"project": {"out": 3 * width, "bias": False}},
            {"attention": {"heads": heads}},
            {"project": width},
        ),
        *_residual(
            {"norm": "layer"},
            {"project": {"out": width, "bias": False}},
            {"condition": {"width": context, "out": 2 * width, "tokens": tokens, "bias": False}},
            {"attention": {"heads": heads, "context": tokens}},
            {"project": width},
        ),
        *_residual(
            {"norm": "layer"},
            {"project": 8 * width},
            {"gated_activation": "gelu"},
            {"project": width},
        ),
    ]
    return _residual(
        {"norm": "group"},
        {"project": width},
        {"repeat": {"count": depth, "layers": block}},
        {"project": width},
    )


def diffusion_unet(before: int, widths: list[int], depths: list[int], context: int, head_widths: list[int],
                   blocks: int = 2, middle: int = 1, labels: int = 0) -> Entries:  # fmt: skip
    """The U-Net of latent diffusion: residual blocks, and attention to a text where the depth of a level asks for it.

    Args:
        before: channels of the latents.
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
        *([{"condition": {"width": labels, "out": signal}}, {"condition": {"width": signal, "out": signal}}]
          if labels else []),
        {"conv": {"out": widths[0]}},
        {"save": "skip 0"},
    ]  # fmt: skip
    skips = ["skip 0"]
    for place, (width, depth, head) in enumerate(levels):
        for _ in range(blocks):
            down += _level(width, depth, head, context, signal)
            skips.append(f"skip {len(skips)}")
            down.append({"save": skips[-1]})
        if place + 1 < len(levels):
            skips.append(f"skip {len(skips)}")
            down += [{"conv": {"out": width, "stride": 2}}, {"save": skips[-1]}]
    width, _, head = levels[-1]
    inside = [
        {"diffusion_block": {"width": width, "signal": signal}},
        *_texts(width, middle, head, context),
        {"diffusion_block": {"width": width, "signal": signal}},
    ]
    up: Entries = []
    for place, (width, depth, head) in reversed(list(enumerate(levels))):
        for _ in range(blocks + 1):
            up += [{"concat": skips.pop()}, *_level(width, depth, head, context, signal)]
        if place:
            up += [{"upsample": 2}, {"conv": {"out": width}}]
    return [*down, *inside, *up, {"norm": "group"}, {"activation": "silu"}, {"conv": {"out": before}}]


def _level(width: int, depth: int, head: int, context: int, signal: int) -> Entries:
    return [{"diffusion_block": {"width": width, "signal": signal}}, *_texts(width, depth, head, context)]


def _texts(width: int, depth: int, head: int, context: int) -> Entries:
    options = {"width": width, "head_width": head, "depth": depth, "context": context}
    return [{"text_attention_blocks": options}] if depth else []


def latent_encoder(before: int, widths: list[int], blocks: int = 2) -> Entries:
    """The encoder of an image to latents an eighth as wide, with attention in its middle (Rombach et al. 2022)."""
    del before
    entries: Entries = [{"conv": {"out": widths[0]}}]
    for place, width in enumerate(widths):
        entries += [{"diffusion_block": {"width": width, "signal": 0}}] * blocks
        if place + 1 < len(widths):
            entries.append({"conv": {"out": width, "stride": 2}})
    width = widths[-1]
    return [
        *entries,
        {"diffusion_block": {"width": width, "signal": 0}},
        *_residual({"norm": "group"}, {"project": 3 * width}, {"attention": {"heads": 1}}, {"project": width}),
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
