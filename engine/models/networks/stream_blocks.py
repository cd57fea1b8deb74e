"""Blocks of networks that make pictures from texts: two streams that attend to each other, and what stands around them.

The streams are the saved tensors ``picture`` and ``text``; each has weights of its own, and their attention is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.models.networks.blocks import Block, Entries
from capacity_tui.engine.models.networks.composite_blocks import residual

_MODULATED: Entries = [{"norm": {"out": "layer", "trained": False}}, {"activation": "modulation"}]
_GATED: Entries = [{"activation": "modulation"}]


def joint_block(
    _channels: int,
    width: int,
    heads: int,
    *,
    head_norm: bool = True,
    rotary: bool = False,
    twice: bool = False,
    last: bool = False,
) -> Entries:
    """A transformer block over both streams, each with weights of its own, whose attention is one (Esser et al. 2024).

    Args:
        head_norm: whether queries and keys are normalized within each head.
        rotary: whether positions are rotations of queries and keys.
        twice: whether the picture attends to itself once more.
        last: whether nothing of the text is needed behind it.
    """
    norm: Entries = [{"norm": {"out": "heads", "channels": width // heads}}] if head_norm else []
    again: Entries = [
        {"resume": "picture inside"},
        *_GATED,
        {"project": 3 * width},
        *norm,
        {"attention": {"heads": heads}},
        {"project": width},
        *_GATED,
        {"add": "picture"},
        {"save": "picture"},
    ]
    answer: Entries = [{"part": "text"}, {"project": width}, {"save": "text out"}, {"resume": "attended"}]
    behind: Entries = [
        {"resume": "text out"},
        *_GATED,
        {"add": "text"},
        *_feed_forward(width),
        {"save": "text"},
        {"resume": "picture"},
    ]
    return [
        {"condition": {"width": width, "out": (9 if twice else 6) * width}},
        {"condition": {"width": width, "out": (2 if last else 6) * width}},
        {"resume": "text"},
        *_MODULATED,
        {"save": "text inside"},
        {"resume": "picture"},
        *_MODULATED,
        {"save": "picture inside"},
        {"project": 3 * width},
        {"save": "picture queries"},
        {"resume": "text inside"},
        {"project": 3 * width},
        *norm,
        {"save": "text queries"},
        {"resume": "picture queries"},
        *norm,
        {"join": "text queries"},
        *(["rotary"] if rotary else []),
        {"attention": {"heads": heads}},
        {"save": "attended"},
        *([] if last else answer),
        {"part": "picture"},
        {"project": width},
        *_GATED,
        {"add": "picture"},
        {"save": "picture"},
        *(again if twice else []),
        *_feed_forward(width),
        {"save": "picture"},
        *([] if last else behind),
    ]


def single_stream_block(_channels: int, width: int, heads: int) -> Entries:
    """A transformer block over the joined streams, whose feed-forward stands beside its attention (FLUX.1)."""
    arms = [
        [{"project": 4 * width}, {"activation": "gelu"}],
        [
            {"project": 3 * width},
            {"norm": {"out": "heads", "channels": width // heads}},
            "rotary",
            {"attention": {"heads": heads}},
        ],
    ]
    return [
        {"condition": {"width": width, "out": 3 * width}},
        *residual(*_MODULATED, {"parallel": arms}, {"project": width}, *_GATED),
    ]


def _feed_forward(width: int) -> Entries:
    return residual(*_MODULATED, {"project": 4 * width}, {"activation": "gelu"}, {"project": width}, *_GATED)


def joint_transformer(
    in_channels: int,
    width: int,
    heads: int,
    depth: int,
    context: int,
    tokens: int,
    signals: list[int],
    *,
    single: int = 0,
    twice: int = 0,
    head_norm: bool = True,
    rotary: bool = False,
    positions: int = 0,
    context_norm: bool = False,
    drops_text: bool = False,
) -> Entries:
    """The transformer of latent diffusion over patches of 2x2 latents and the tokens of a text (Esser et al. 2024).

    Args:
        depth: blocks over two streams.
        context: width of the text's tokens.
        tokens: of the text.
        signals: widths of what shifts and scales all blocks, such as the time and a summary of the text.
        single: blocks over the joined streams behind them.
        twice: how many of the blocks have a further attention of the picture to itself.
        head_norm: whether queries and keys are normalized within each head.
        rotary: whether positions are rotations of queries and keys, or a fixed table that is added.
        positions: side of that table, in patches, which is stored and loaded with the weights.
        context_norm: whether the text is normalized before it is projected.
        drops_text: whether the last block over two streams makes nothing of the text.
    """
    options = {"width": width, "heads": heads, "head_norm": head_norm, "rotary": rotary}
    joined: Entries = [
        {"resume": "text"},
        {"join": "picture"},
        {"repeat": {"count": single, "layers": [{"single_stream_block": {"width": width, "heads": heads}}]}},
        {"part": "picture"},
    ]
    return [
        {"conv": {"out": width, "kernel": 2, "stride": 2, "padding": 0}},
        *([] if rotary else [{"frozen": [{"table": positions**2 * width}]}, "shift"]),
        *({"condition": {"width": size, "out": width}} for signal in signals for size in (signal, width)),
        {"save": "picture"},
        {"text": {"tokens": tokens, "width": context}},
        *([{"norm": {"out": "layer", "channels": context // 2}}] if context_norm else []),
        {"project": width},
        {"save": "text"},
        {"repeat": {"count": twice, "layers": [{"joint_block": {**options, "twice": True}}]}},
        {"repeat": {"count": depth - twice - drops_text, "layers": [{"joint_block": options}]}},
        *([{"joint_block": {**options, "last": True}}] if drops_text else []),
        *(joined if single else [{"resume": "picture"}]),
        {"condition": {"width": width, "out": 2 * width}},
        *_MODULATED,
        {"project": 4 * in_channels},
    ]


def text_encoder(
    _channels: int,
    width: int,
    depth: int,
    heads: int,
    inner: int,
    tables: int,
    tokens: int = 77,
    *,
    gated: bool = False,
    projected: int = 0,
) -> Entries:
    """A transformer that reads a text: CLIP's (Radford et al. 2021), or gated and without biases as T5 1.1.

    Args:
        inner: width of the feed-forward.
        tables: parameters of embeddings and positions.
        tokens: of the text.
        gated: whether the feed-forward has a gate, norms have no shift and products no bias.
        projected: width that a summary of the text is projected to; 0 for none.
    """
    bias = not gated
    norm = {"norm": {"out": "layer", "channels": width // 2 if gated else width}}
    products = [{"out": out, "bias": bias} for out in (3 * width, width, 2 * inner if gated else inner)]
    block = [
        *residual(norm, {"project": products[0]}, {"attention": {"heads": heads}}, {"project": products[1]}),
        *residual(
            norm,
            {"project": products[2]},
            {"gated_activation": "gelu"} if gated else {"activation": "gelu"},
            {"project": products[1]},
        ),
    ]
    summary = [{"condition": {"width": width, "out": projected, "bias": False}}] if projected else []
    return [
        {"text": {"tokens": tokens, "width": width}},
        {"table": tables},
        {"repeat": {"count": depth, "layers": block}},
        norm,
        *summary,
    ]


def latent_decoder(
    _channels: int, width: int, factors: list[int], channels: int, blocks: int = 3, colours: int = 3
) -> Entries:
    """The decoder of latents to an image eight times as wide, with attention in its middle (Rombach et al. 2022).

    Args:
        width: channels of the finest level.
        factors: channels of each level over that, from the finest.
        channels: of the latents.
        blocks: residual blocks of a level.
        colours: channels of the image.
    """
    levels = [factor * width for factor in reversed(factors)]
    inner = levels[0]
    entries: Entries = [
        {"latents": {"channels": channels}},
        {"conv": {"out": inner}},
        {"diffusion_block": {"width": inner, "signal": 0}},
        *residual({"norm": "group"}, {"project": 3 * inner}, {"attention": {"heads": 1}}, {"project": inner}),
        {"diffusion_block": {"width": inner, "signal": 0}},
    ]
    for index, level in enumerate(levels):
        entries += [{"diffusion_block": {"width": level, "signal": 0}}] * blocks
        if index + 1 < len(levels):
            entries += [{"upsample": 2}, {"conv": {"out": level}}]
    return [*entries, {"norm": "group"}, {"activation": "silu"}, {"conv": {"out": colours}}]


STREAM_BLOCKS: Mapping[str, Block] = {
    "joint_block": joint_block,
    "single_stream_block": single_stream_block,
    "joint_transformer": joint_transformer,
    "text_encoder": text_encoder,
    "latent_decoder": latent_decoder,
}
