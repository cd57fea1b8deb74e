"""Parts of memory and of a step: what each is called, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capacity_tui.engine.estimate.work import Part

_ROOM = {
    "weights":
        "The parameters themselves, as they lie on one device. Shorter number formats and sharding make them smaller.",
    "gradients":
        "One number for each trained parameter, from the backward pass to the update. Adapters have few of them, ZeRO "
        "2 shares them out.",
    "optimizer":
        "What the optimizer remembers of each trained parameter, such as two moments and a 32-bit copy. ZeRO shares it "
        "out, 8-bit optimizers shrink it.",
    "activations":
        "What layers hand on, which training keeps for the backward pass and serving drops at once. It grows with "
        "batch and sequence; recomputation trades it for time.",
    "logits":
        "A score for each token and each word of the vocabulary, in training with its gradient. A fused or chunked "
        "loss never holds all of them.",
    "buffers":
        "Room for communication, gathered layers and the workspace of kernels. It is there only while something runs, "
        "yet counts at the peak.",
    "kv_cache":
        "Keys and values of every token that answers still look back at. It grows with batch and context, and with "
        "what it is stored as.",
    "context":
        "What the driver and its libraries take before a program does anything. Nothing in a plan makes it smaller.",
    "reserve":
        "Memory that the allocator holds and nobody uses, as blocks do not fit one another. Less varied sizes keep it "
        "small.",
}  # fmt: skip
# Classical algorithms have these instead.
_TABLES = {
    "data": "The table that is learnt from, with its targets. It lies in memory as a whole.",
    "copies": "Copies of the table in the form that the algorithm reads. They stay as long as the fit.",
    "work": "What the algorithm writes down while it runs. It is gone when the fit ends.",
    "model": "What was learnt so far. For trees it grows with their number and depth.",
}  # fmt: skip
_TIME: Mapping[Part, str] = {
    "compute":
        "Time of matrix products and other kernels of the layers. A faster device or a shorter number format shrinks "
        "it.",
    "attention": "Time of the kernels of attention. It grows with the square of the sequence.",
    "tensor_parallel": "Time that devices wait for the exchange inside layers. Keep such groups inside a node.",
    "context_parallel":
        "Time that devices wait for pieces of the sequence that others hold. Longer sequences hide more of it.",
    "expert_parallel":
        "Time that devices wait for tokens on their way to experts and back. Fast links between the devices shrink it.",
    "pipeline_bubble":
        "Time that stages of a pipeline stand still while it fills and empties. More micro-batches in a step shrink "
        "its share.",
    "data_parallel":
        "Time that devices wait for gradients and weights of the other replicas. Larger batches hide more of it.",
    "optimizer": "Time of the update of the weights. Sharding divides it, offloading makes it longer.",
    "overhead":
        "Time in which the host prepares work and the device waits. Compiled and captured programs have less of it.",
    "input":
        "Time in which devices wait for data that are read or decoded more slowly than they work. Faster disks, a "
        "cache or more loader workers shrink it.",
    "idle": "Time in which a device waits for others that are slower. Alike devices have none.",
}  # fmt: skip
PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType({"memory.parts": (*_ROOM,), "computation.parts": (*_TIME,)})
"""Parts that every answer names, by the key above theirs; those that a run has none of are 0."""
_HELP = {f"memory.parts.{part}": text for part, text in (_ROOM | _TABLES).items()}
_HELP |= {f"computation.parts.{part}": text for part, text in _TIME.items()}
_LABELS = {"kv_cache": "KV cache", "context": "driver context", "reserve": "allocator reserve"}


def part_label(part: str) -> str:
    """Return what a part of memory or of a step is called."""
    return _LABELS.get(part, part.replace("_", " "))


def part_help(key: str) -> str:
    """Return what a part is and why it matters, by its result key; empty for one that has no text."""
    return _HELP.get(key, "")
