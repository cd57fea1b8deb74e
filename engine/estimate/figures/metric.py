"""A kind of figure: what it is called, how it is read and written, where it is shown, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from capacity_tui.engine.estimate.figures.readers import Figured, Reader
from capacity_tui.engine.estimate.work import Part
from capacity_tui.engine.keys import Figure, Parts
from capacity_tui.engine.record import dataclass

LESS, NEITHER, MORE = -1, 0, 1
Block: TypeAlias = Literal["", "model", "memory", "time", "cost", "law"]

Runs: TypeAlias = Literal[
    "none", "all", "trained", "served", "not served", "loaded", "unloaded", "ending", "closed", "open"
]

RUNS: Mapping[Runs, Callable[[Figured], bool]] = {
    "none": lambda _: False,
    "all": lambda _: True,
    "trained": lambda e: e.computation.iteration != "batch",
    "served": lambda e: e.computation.infer is not None,
    "not served": lambda e: e.computation.infer is None,
    "loaded": lambda e: e.computation.infer is not None and e.computation.infer.request_seconds is not None,
    "unloaded": lambda e: e.computation.infer is not None and e.computation.infer.request_seconds is None,
    "ending": lambda e: e.computation.infer is not None and e.computation.infer.all_requests_seconds is not None,
    "closed": lambda e: e.computation.steps is not None,
    "open": lambda e: e.computation.steps is None,
}
"""Kinds of runs: served under a load of requests that may end, or without one, jobs whose length is open or not."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A kind of figure."""

    key: str  # its result key, which is its place in JSON
    # what it is called; ``{counted}`` stands for what the run counts (tokens, images), ``{samples}`` for what its
    # samples are, ``{iteration}`` for what is timed (step, batch, fit), ``{job}`` for the whole of the work,
    # ``{total}`` and ``{both}`` say that prompts count as well as answers, ``{device}`` what a device is called
    label: str
    unit: str  # unit of the value, with the same words
    read: Reader  # returns it from an estimate
    better: int = NEITHER  # ``LESS``, ``MORE`` or ``NEITHER``
    brief: str = ""  # label where there is little room; empty for the same
    head: str = ""  # name of its column; empty for the brief label
    has_ends: bool = False  # whether JSON gives its range where it stands; else below ``ranges``
    block: Block = ""  # heading of reports that it stands under; empty where they leave it out
    panel: Runs = "none"  # runs for which the table of the plan shows it
    # whether the figure of an estimate tells nothing new, and is left out
    saying_nothing: Callable[[Figured], bool] | None = None
    # runs of which two are compared by it: all, or those that do the same work
    difference: Literal["", "all", "same work"] = ""
    topic: str = ""  # what a difference is about; of several figures of one topic the first that two runs have
    column: str = ""  # what a column of alternatives tells; of several figures of one word the first that is known
    rank: int = 0  # how soon the column gives way where there is little room, the highest first; 0 for never
    words: tuple[str, ...] = ()  # short words for it in limits and goals
    trained: tuple[str, ...] = ()  # such words of what is trained
    served: tuple[str, ...] = ()  # such words of what is served
    goal: int = NEITHER  # what is wanted of it as a goal, where it is neither good nor bad by itself
    open_length: Figure | None = None  # the figure that leads to the same choice where the length of a job is open
    help: str = ""  # what it is and why it matters, in two sentences

    @property
    def name(self) -> str:
        """The label without what it adds in brackets, for sentences."""
        return self.label.partition(" (")[0]

    @property
    def is_main(self) -> bool:
        """Whether a brief answer has it: what alternatives are compared by, and what a load that ends is about."""
        return bool(self.column or self.topic) or self.panel == "ending"


_ROOM = {
    "weights": ("The model's parameters as stored on one device. Lower precision and sharding make them smaller."),
    "gradients": (
        "One value per trained parameter, from the backward pass to the update. Adapters have few of them, and ZeRO "
        "2 shards them."
    ),
    "optimizer": (
        "What the optimizer keeps for each trained parameter, such as two moments and an fp32 master copy. ZeRO "
        "shards it, 8-bit optimizers shrink it."
    ),
    "activations": (
        "Outputs of the layers, kept for the backward pass in training and dropped at once in serving. They grow "
        "with batch and sequence; recomputation trades them for time."
    ),
    "logits": (
        "A score for each token and vocabulary entry, with its gradient in training. A fused or chunked loss never "
        "holds all of them."
    ),
    "buffers": (
        "Communication buffers, gathered layers and kernel workspace. It is allocated only while something runs, but "
        "counts at the peak."
    ),
    "kv_cache": (
        "Keys and values of every token that is still attended to. It grows with batch and context, and with its "
        "number format."
    ),
    "context": (
        "What the driver and its libraries allocate before a program does anything. No setting of the plan makes it "
        "smaller."
    ),
    "reserve": (
        "Memory that the allocator holds but cannot use, since free blocks do not match requests. More uniform sizes "
        "keep it small."
    ),
}

# Classical algorithms have these instead.
_TABLES = {
    "data": "The training table with its targets. All of it is held in memory.",
    "copies": "Copies of the table in the algorithm's own format. They stay as long as the fit.",
    "work": "Working memory of the algorithm. It is freed when the fit ends.",
    "model": "The fitted model. For trees it grows with their number and depth.",
}

_TIME: Mapping[Part, str] = {
    "compute": (
        "Time in matrix products and other kernels of the layers. A faster device or lower precision shrinks it."
    ),
    "attention": "Time in attention kernels. It grows with the square of the sequence.",
    "tensor_parallel": "Time devices wait for communication inside layers. Keep such groups inside a node.",
    "context_parallel": (
        "Time devices wait for the parts of the sequence that others hold. Longer sequences hide more of it."
    ),
    "expert_parallel": (
        "Time devices wait for tokens on their way to experts and back. Fast links between the devices shrink it."
    ),
    "pipeline_bubble": (
        "Time pipeline stages idle while the pipeline fills and drains. More micro-batches in a step shrink its share."
    ),
    "data_parallel": (
        "Time devices wait for gradients and weights of the other replicas. Larger batches hide more of it."
    ),
    "optimizer": "Time of the weight update. Sharding divides it, offloading makes it longer.",
    "overhead": ("Time the device waits for the host to launch work. Compiled and captured programs have less of it."),
    "input": (
        "Time devices wait for data that is read or decoded more slowly than they work. Faster disks, a cache or "
        "more loader workers shrink it."
    ),
    "idle": "Time a device waits for slower ones. Identical devices have none.",
}

PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType({Parts.MEMORY: (*_ROOM,), Parts.COMPUTATION: (*_TIME,)})
"""Parts that every answer names, by the key above theirs; those that a run has none of are 0."""

_HELP = {
    **{f"{Parts.MEMORY}.{part}": text for part, text in (_ROOM | _TABLES).items()},
    **{f"{Parts.COMPUTATION}.{part}": text for part, text in _TIME.items()},
}

_LABELS = {
    "kv_cache": "KV cache",
    "context": "driver context",
    "reserve": "fragmentation",
    "buffers": "workspace & comm.",
}


def part_label(part: str) -> str:
    """Return what a part of memory or of a step is called."""
    return _LABELS.get(part, part.replace("_", " "))


def part_help(key: str) -> str:
    """Return what a part is and why it matters, by its result key; empty for one that has no text."""
    return _HELP.get(key, "")
