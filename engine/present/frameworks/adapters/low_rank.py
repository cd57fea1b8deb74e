"""Low-rank adapters as tools for fine-tuning are told of them. Matrices are named as in checkpoints of Llama."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capacity_tui.engine.present.frameworks.job import Job

LEARNING_RATE = 2e-4
"""Written where a plan gives none: usual for adapters (Hu et al. 2021, Dettmers et al. 2023)."""
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
EMBEDDING_AND_HEAD = ("embed_tokens", "lm_head")
_NAMED: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "attention": ATTENTION,
    "mlp": FEED_FORWARD,
    "query+value": ("q_proj", "v_proj"),
}
_FOUR_BITS = ("nf4", "fp4")
_EIGHT_BITS = ("int8",)
_ALPHA_OVER_RANK = 2


@dataclass(frozen=True, slots=True)
class LowRank:
    """The adapters of a job.

    Attributes:
        rank: their rank.
        targets: the plan's word for the matrices that have one.
        names: the names of these matrices; none for all linear layers.
        is_weighted: whether directions and lengths are trained apart (DoRA).
        whole: what is trained as a whole beside them.
        base: format of the frozen base; empty where it has the type of the run.
    """

    rank: int
    targets: str
    names: tuple[str, ...]
    is_weighted: bool
    whole: tuple[str, ...]
    base: str

    @property
    def alpha(self) -> int:
        """Factor of what they add, times their rank."""
        return _ALPHA_OVER_RANK * self.rank

    @property
    def bits(self) -> int | None:
        """Bits of a weight of the base as bitsandbytes packs it; None where it does not."""
        return 4 if self.base in _FOUR_BITS else 8 if self.base in _EIGHT_BITS else None


def low_rank(job: Job) -> LowRank | None:
    """Return the adapters of a job; None where all weights are trained."""
    training, adapter = job.training, job.training.adapter
    if adapter is None:
        return None
    base = training.quantization or (_FOUR_BITS[0] if adapter.kind == "qlora" else "")
    return LowRank(
        rank=int(adapter.rank),
        targets=adapter.targets,
        names=_NAMED[adapter.targets],
        is_weighted=adapter.kind == "dora",
        whole=EMBEDDING_AND_HEAD if adapter.train_embeddings else (),
        base=base,
    )


def learning_rate(job: Job) -> float:
    """Return the plan's learning rate, or a usual one."""
    given = job.training.learning_rate
    return LEARNING_RATE if given is None else float(given)


def adapter_remarks(job: Job, adapter: LowRank) -> Iterator[str]:
    """Yield what the plan does not say of adapters and a tool must know, and what no tool takes."""
    if job.training.learning_rate is None:
        yield f"the plan gives no learning rate: {LEARNING_RATE:g} is written, as is usual for adapters"
    yield f"the plan gives no alpha and no dropout: {adapter.alpha} (twice the rank) and 0 are written"
    if adapter.names:
        yield f"adapters on {', '.join(adapter.names)}: so checkpoints of Llama, Qwen and Mistral name them"
    if adapter.base and adapter.bits is None:
        yield f"frozen base in {adapter.base}: the checkpoint must be in this format"
