"""Which layouts of a model over devices can be: rules, whose words ``profiles/layout_rules.yaml`` has for everything.

A rule that is broken either refuses the plan, where no software runs it, or is remarked on, where software pads, copies
or waits. Every predicate takes arrays, so that one call judges many layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.catalog import Catalog, parse_shipped
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number, where
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.plan.sections import ParallelismSection
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.units import format_number

Flags = NDArray[np.bool_]
# Embedding and loss may take the place of a layer each (Megatron-LM, account_for_embedding_in_pipeline_split and
# account_for_loss_in_pipeline_split; Llama 3.1 405B, whose 126 layers run in 128 chunks).
ENDS = 2
RULES = "layout_rules.yaml"
FOLLOWING = ("dp", "etp", "shard", "sequence_parallel")  # Sizes that follow from others unless a plan gives them


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of a model and how it is spread. Every field may be an array; all broadcast together."""

    devices: Number
    # dp, tp, pp, cp, ep, etp: data, tensor, pipeline, context, expert and expert-tensor parallel sizes
    dp: Number = 1
    tp: Number = 1
    pp: Number = 1
    cp: Number = 1
    ep: Number = 1
    etp: Number = 1
    shard: Number = 1  # ranks of a group that shares states
    sequence_parallel: Number = 0  # 1 where what lies between tensor-parallel products is split too
    interleave: Number = 1  # pipeline chunks a device holds
    # heads, kv_heads: heads of queries, and heads of keys and values
    heads: Number = 1
    kv_heads: Number = 1
    layers: Number = 1
    ffn: Number = 1
    experts: Number = 0  # routed experts of a layer, 0 for a dense model
    expert_ffn: Number = 1  # width of an expert
    vocab: Number = 1
    seq_len: Number = 0  # tokens in a sequence, 0 where sequences are not split
    micro_batches: Number = 0  # micro-batches of a replica for one step, 0 where there are no steps
    global_batch: Number = 0  # sequences of a step over all replicas, 0 where there are no steps
    swaps_heads: Number = 0  # 1 where context parallelism swaps tokens for heads
    # 1 where tensor parallelism splits between heads, 0 where software pads them or splits rows
    whole_heads: Number = 1
    splits_layers: Number = 1  # 1 where software splits layers over devices by itself, 0 where it spreads whole ones

    @property
    def model(self) -> Number:
        """Devices that share one copy of the model."""
        return self.tp * self.pp * self.cp

    @property
    def chunks(self) -> Number:
        """Pieces the layers are cut into."""
        return self.pp * self.interleave


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """One condition of a layout that can be."""

    id: str
    broken: str  # what is wrong where it does not hold, in words
    numbers: str  # the sizes that show it; names in braces are those of ``Layout``
    remedy: str
    field: str
    holds: Callable[[Layout], Flags | bool]
    refuses: bool = True  # whether nothing runs without it; otherwise it is worth a remark

    def figures(self, layout: Layout) -> str:
        """Return the sizes of a single layout that show the rule broken."""
        return self.numbers.format(
            model=format_number(float(layout.model)),
            **{field.name: format_number(float(getattr(layout, field.name))) for field in fields(layout)},
        )


def _divides(number: Number, by: Number) -> Flags:
    return np.asarray(np.mod(number, by) == 0, dtype=np.bool_)


def _is_mean(width: Number) -> Flags:
    """Whether a width is the mean of layers that are not alike, of which nobody knows here what divides each."""
    return np.asarray(np.mod(width, 1) != 0, dtype=np.bool_)


def _split_anywhere(layout: Layout) -> Flags:
    return np.asarray(np.equal(layout.whole_heads, 0), dtype=np.bool_)


_HOLDS: Mapping[str, Callable[[Layout], Flags | bool]] = {
    "devices": lambda layout: _divides(layout.devices, layout.model),
    "replicas": lambda layout: np.asarray(layout.dp * layout.model == layout.devices),
    "expert_groups": lambda layout: _divides(layout.dp * layout.cp * layout.tp, layout.ep * layout.etp),
    "global_batch": lambda layout: np.asarray(
        (np.asarray(layout.global_batch) == 0) | (layout.dp <= layout.global_batch)
    ),
    "heads": lambda layout: _split_anywhere(layout) | _divides(layout.heads, layout.tp),
    "kv_heads": lambda layout: (
        _split_anywhere(layout)
        | _divides(layout.kv_heads, layout.tp)
        | _divides(layout.tp, np.maximum(layout.kv_heads, 1))
    ),
    "feed_forward": lambda layout: _split_anywhere(layout) | _is_mean(layout.ffn) | _divides(layout.ffn, layout.tp),
    "stages": lambda layout: np.asarray(layout.chunks <= layout.layers + ENDS),
    "experts": lambda layout: np.where(
        np.asarray(layout.experts) > 0, _divides(layout.experts, layout.ep), np.asarray(layout.ep) == 1
    ),
    "expert_width": lambda layout: (np.asarray(layout.experts) == 0) | _divides(layout.expert_ffn, layout.etp),
    "sequence": lambda layout: _divides(layout.seq_len, layout.cp),
    "context_heads": lambda layout: (
        (np.asarray(layout.swaps_heads) == 0) | _divides(layout.heads, layout.tp * layout.cp)
    ),
    "kv_heads_copied": lambda layout: np.asarray(layout.tp <= layout.kv_heads),
    "equal_stages": lambda layout: (
        _divides(layout.layers, layout.chunks)
        | _divides(layout.layers + 1, layout.chunks)
        | _divides(layout.layers + ENDS, layout.chunks)
    ),
    "vocabulary": lambda layout: _divides(layout.vocab, layout.tp),
    "micro_batches": lambda layout: (
        (np.asarray(layout.micro_batches) == 0) | np.asarray(layout.micro_batches >= layout.pp)
    ),
    "interleaved_batches": lambda layout: (
        (np.asarray(layout.interleave) == 1) | _divides(layout.micro_batches, layout.pp)
    ),
}
LAYOUT_RULES: Final = tuple(LayoutRule(id_, holds=_HOLDS[id_], **row) for id_, row in parse_shipped(RULES).items())
_BY_ID = {rule.id: rule for rule in LAYOUT_RULES}
MODEL_DIVIDES_DEVICES: Final = _BY_ID["devices"]
REPLICAS_FILL_DEVICES: Final = _BY_ID["replicas"]
EXPERT_GROUPS: Final = _BY_ID["expert_groups"]
EQUAL_STAGES: Final = _BY_ID["equal_stages"]
BATCH_FOR_ALL: Final = _BY_ID["global_batch"]


def stated_layout(section: ParallelismSection, devices: int) -> Layout:
    """Return the sizes that a plan gives, 1 for those that it leaves open, without what the model is like."""
    return Layout(
        devices=float(devices),
        dp=float(section.dp if isinstance(section.dp, int) else 1),
        tp=float(section.tp or 1),
        pp=float(section.pp or 1),
        cp=float(section.cp),
        ep=float(section.ep),
        etp=float(section.etp or 1),
        shard=float(section.shard or 1),
        sequence_parallel=float(bool(section.sequence_parallel)),
        interleave=float(section.interleave),
    )


def plan_layout(plan: Plan, shape: TransformerShape, catalog: Catalog) -> Layout:
    """Return the layout of a plan whose sizes are all settled."""
    parallel, training, engine = plan.parallelism, plan.training, plan.inference.engine
    layout, serves = stated_layout(parallel, int(plan.hardware.devices or 1)), plan.is_inference
    per_pass = layout.dp * (1 if serves else int(training.micro_batch))
    return replace(
        layout,
        heads=shape.heads,
        kv_heads=shape.attention_kind.key_value_heads,
        layers=shape.layers,
        ffn=shape.ffn,
        experts=shape.experts,
        expert_ffn=shape.moe_ffn,
        vocab=shape.vocab,
        seq_len=0.0 if serves else float(training.seq_len),
        micro_batches=0.0 if serves else float(np.ceil(float(training.global_batch or per_pass) / per_pass)),
        global_batch=0.0 if serves else float(training.global_batch or per_pass),
        swaps_heads=float(not serves and parallel.context == "all_to_all"),
        whole_heads=splits_whole_heads(engine, catalog) if serves else 1.0,
        splits_layers=splits_layers(engine, catalog) if serves else 1.0,
    )


def splits_whole_heads(engine: str, catalog: Catalog) -> float:
    """Return 1 where tensor parallelism of an engine splits between heads, 0 where it pads them or splits rows."""
    return float(all(row.whole_heads for row in catalog.engine_rows(engine)))


def splits_layers(engine: str, catalog: Catalog) -> float:
    """Return 1 where an engine splits layers over devices by itself, 0 where it spreads whole ones."""
    return float(all(row.splits_layers for row in catalog.engine_rows(engine)))


def refusing() -> tuple[LayoutRule, ...]:
    """Return the rules without which nothing runs."""
    return tuple(rule for rule in LAYOUT_RULES if rule.refuses)


def given_sizes(section: ParallelismSection) -> frozenset[str]:
    """Return which of the sizes that may follow from others a plan gives itself."""
    return frozenset(name for name in FOLLOWING if getattr(section, name) not in (None, AUTO))


def with_following(layout: Layout, stated: Collection[str]) -> Layout:
    """Return a layout, or arrays, with the sizes that follow from others but those that are ``stated``."""
    # Without stages there are no pieces of a pipeline to take turns.
    follow: dict[str, Number] = {"interleave": where(layout.pp > 1, layout.interleave, 1.0)}
    if "etp" not in stated:
        follow["etp"] = where(layout.ep > 1, 1.0, layout.tp)
    if "dp" not in stated:
        follow["dp"] = np.maximum(np.floor(layout.devices / layout.model), 1.0)
    if "sequence_parallel" not in stated:
        follow["sequence_parallel"] = (layout.tp > 1) * 1.0
    ranks = follow.get("dp", layout.dp) * layout.cp
    return replace(layout, shard=np.minimum(layout.shard, ranks) if "shard" in stated else ranks, **follow)


def possible(layout: Layout, *besides: LayoutRule) -> Flags:
    """Return where a layout can be at all, over its broadcast arrays; it is to keep the rules ``besides`` too."""
    kept = np.asarray(True)
    for rule in (*LAYOUT_RULES, *besides):
        if rule.refuses or rule in besides:
            kept = kept & rule.holds(layout)
    return kept


def require(rule: LayoutRule, layout: Layout) -> None:
    """Raise PlanError where a single layout breaks a rule, with the sizes, the field and what to do."""
    if not np.all(rule.holds(layout)):
        sizes = {"needed": f"{float(layout.dp * layout.model):.0f}", "dp": f"{float(layout.dp):.0f}"}
        raise PlanError(rule.broken, rule.figures(layout), rule.remedy.format(**sizes), Place(field=rule.field))


def refuse_impossible(layout: Layout) -> None:
    """Raise the first rule that a single layout cannot do without; raises PlanError if the layout cannot be."""
    for rule in LAYOUT_RULES:
        if rule.refuses:
            require(rule, layout)


def remarked(layout: Layout) -> Iterator[LayoutRule]:
    """Yield the rules that a single layout breaks and that software finds a way around."""
    return (rule for rule in LAYOUT_RULES if not rule.refuses and not np.all(rule.holds(layout)))
