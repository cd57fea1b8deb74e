"""What a figure is the sum of: parts, and the kernels and collectives of each part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import Derivation, Estimate, Input, Operator, Phase, ResolvedPlan, origin, part_label
from capacity_tui.engine.estimate.timing import PhaseTime, operator_seconds
from capacity_tui.engine.estimate.transformer import trained_counts
from capacity_tui.engine.explain.step_charts import Sent, sent
from capacity_tui.engine.keys import SERVING, Figure, Parts
from capacity_tui.engine.models.networks import Layer, NetworkSpec
from capacity_tui.engine.models.transformer import ParameterCounts
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_count,
    format_flops,
    format_number,
    format_percent,
)

OUTSIDE_ALLOCATOR = frozenset({"context", "reserve"})
PART_BYTES = f"{Parts.MEMORY}."
PART_SECONDS = f"{Parts.COMPUTATION}."
STEP = "step_seconds"
OPERATOR_ORIGINS: Mapping[str, tuple[str, ...]] = {
    "rate": ("gemm_rate", "attention_rate", "narrow_rate"),
    "bytes": (
        "elementwise_bytes",
        "moved_bytes",
        "gemm_bytes",
        "autocast_bytes",
        "unpacking_bytes",
        "adapter_bytes",
        "merged_bytes",
        "order_bytes",
        "held_bytes",
    ),
    "bandwidth": ("reached_bandwidth", "network_bandwidth", "weight_bandwidth", "host_share"),
}
"""Equations that give the numbers of kernels."""
COLLECTIVE_ORIGINS = (
    "sharded_backward_seconds",
    "reduction_seconds",
    "stalled_seconds",
    "crossing_seconds",
    "one_pass_seconds",
    "two_passes",
)
"""Equations that give the seconds of collectives."""


@dataclass(frozen=True, slots=True)
class Term:
    """One addend of a number."""

    name: str
    value: float  # its size in the unit of the sum
    detail: str = ""
    derivation: Derivation | None = None  # the equation behind it, where one was recorded
    key: str = ""  # the result key of the figure it is, empty where it is none of its own
    sum: Sum | None = None  # what it is the sum of itself, where it is no figure; None where it is none


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms, largest first, and what they add up to."""

    terms: tuple[Term, ...]
    unit: str
    name: str = ""  # the symbol of the sum in the figure's formula; empty where it is the figure itself
    key: str = ""  # the result key of the sum, empty where it is no other figure


def sum_of(key: str, resolved: ResolvedPlan, estimate: Estimate, catalog: Catalog) -> Sum | None:
    """Return what a figure, or what its formula starts from, is the sum of; None where it is no sum."""
    group = key.partition(".")[0]
    if group == "memory":
        return _memory_sum(key, estimate)
    if group == "model":
        unit = "FLOP" if key == Figure.MODEL_FORWARD_FLOPS else ""
        return _sum(_model_terms(key, resolved, estimate, catalog), unit)
    if key.startswith(PART_SECONDS):
        return _sum(_part_terms(key.removeprefix(PART_SECONDS), estimate), "s")
    if key.startswith(f"{SERVING}.") and key != Figure.REQUESTS_PER_SECOND:
        return _serving_sum(key, estimate)
    in_seconds = group == "computation" and key != Figure.TOTAL_FLOPS
    if in_seconds or key in {
        Figure.COST_USD,
        Figure.COST_USD_SPOT,
        Figure.COST_USD_PER_MILLION_TOKENS,
        Figure.ENERGY_KWH,
    }:
        names: dict[str, str] = {Figure.STEP_SECONDS: "", Figure.REQUESTS_PER_SECOND: "seconds"}
        name = names.get(key, STEP)
        return _sum(_parts(estimate.computation.parts, PART_SECONDS), "s", name, Figure.STEP_SECONDS if name else "")
    return None


def _sum(terms: Iterable[Term], unit: str, name: str = "", key: str = "") -> Sum | None:
    kept = sorted((term for term in terms if term.value != 0), key=lambda term: -abs(term.value))
    return Sum(tuple(kept), unit, name, key) if kept else None


def _parts(parts: Mapping[str, Number], group: str = "") -> Iterator[Term]:
    """Yield parts as terms; those of a group of figures are figures of their own."""
    for name, size in parts.items():
        yield Term(part_label(name), mean(size), key=f"{group}{name}" if group else "")


def _memory_sum(key: str, estimate: Estimate) -> Sum | None:
    parts = estimate.memory.parts
    if key == Figure.MEMORY_PER_DEVICE_BYTES:
        inside = {name: size for name, size in parts.items() if name not in OUTSIDE_ALLOCATOR}
        return _sum(_parts(inside, PART_BYTES), "B")
    if key == Figure.MEMORY_ALLOCATOR_BYTES:
        return _sum(_parts({name: size for name, size in parts.items() if name != "context"}, PART_BYTES), "B")
    if key == Figure.MEMORY_RESERVED_BYTES:
        return _sum(_parts(parts, PART_BYTES), "B")
    if key == Figure.MEMORY_UTILIZATION_PERCENT:
        return _sum(_parts(parts, PART_BYTES), "B", "reserved", Figure.MEMORY_RESERVED_BYTES)
    return None


def _model_terms(key: str, resolved: ResolvedPlan, estimate: Estimate, catalog: Catalog) -> Iterator[Term]:
    if resolved.shape is not None:
        counts = trained_counts(resolved.plan.training, resolved.shape)
        if key == Figure.MODEL_FORWARD_FLOPS:
            return _flops_terms(counts, mean(estimate.model.forward_flops))
        return _parameter_terms(counts, mean(counts.experts_active if "active" in key else counts.experts))
    if isinstance(resolved.spec, NetworkSpec):
        layers = resolved.spec.network(catalog, resolved.family.id, trains=not resolved.plan.is_inference).layers
        return _layer_terms(layers, "flops" if key == Figure.MODEL_FORWARD_FLOPS else "parameters")
    return iter(())


def _parameter_terms(counts: ParameterCounts, experts: float) -> Iterator[Term]:
    """Yield the parameters of a transformer by part, with this many routed experts in each layer that has them."""

    def layered(name: str, layers: Number, one: Number) -> Term:
        layers = layers / counts.layer_uses
        detail = f"{format_number(mean(layers))} layers of {format_count(mean(one), decimals=2)}"
        return Term(name, mean(layers * one), detail)

    yield Term("token embedding", mean(counts.token_embedding))
    yield Term("position embedding", mean(counts.position_embedding))
    yield layered("attention", counts.layers, counts.attention_per_layer)
    yield layered("cross-attention", counts.layers, counts.cross_attention_per_layer)
    yield layered("feed-forward", counts.dense_layers, counts.mlp_per_dense_layer)
    routed = layered("routed experts", counts.moe_layers, counts.expert * experts)
    yield Term(routed.name, routed.value, f"{routed.detail}, {format_number(experts)} experts in each")
    yield layered("shared experts", counts.moe_layers, counts.shared_experts_per_layer)
    yield layered("routers", counts.moe_layers, counts.router_per_moe_layer)
    yield layered("norms", counts.layers, counts.norms_per_layer)
    yield Term("final norm and pooler", mean(counts.final))
    yield Term("output head", mean(counts.head))
    yield Term("encoder", mean(counts.encoder))
    yield Term("embedding projections", mean(counts.extra))
    yield Term("towers, connectors and heads", mean(counts.other_weights))


def _flops_terms(counts: ParameterCounts, flops: float) -> Iterator[Term]:
    weights = mean(counts.matmul_per_token)
    detail = f"2 for each of the {format_count(weights, decimals=2)} weights a token is multiplied with"
    yield Term("matrix products", 2.0 * weights, detail)
    attention = "2 · context · heads · (query width + value width) in each layer, mean over the positions"
    yield Term("attention scores and weighted values", flops - 2.0 * weights, attention)


def _layer_terms(layers: Iterable[Layer], attribute: str) -> Iterator[Term]:
    """Yield the layers of a network, those alike together."""
    alike: dict[Layer, int] = {}
    for layer in layers:
        alike[layer] = alike.get(layer, 0) + 1
    for layer, count in alike.items():
        one = float(getattr(layer, attribute))
        yield Term(
            layer.name, one * count, f"{_times(count, 'time')} {format_count(one, decimals=2)}" if count > 1 else ""
        )


def _part_terms(part: str, estimate: Estimate) -> Iterator[Term]:
    """Yield the seconds of a part, phase by phase: its kernels, its communication, and what is left of it."""
    work, times = estimate.work, estimate.computation.phases
    for phase, time in zip(work.phases, times, strict=True):
        yield from _phase_terms(phase, time, part)
    working = sum(mean(time.parts.get(part, 0.0) * phase.runs) for phase, time in zip(work.phases, times, strict=True))
    if work.held_seconds is not None:
        yield Term(
            "with the utilization that the plan holds", mean(estimate.computation.parts.get(part, 0.0)) - working
        )


def _phase_terms(phase: Phase, time: PhaseTime, part: str) -> Iterator[Term]:
    ending = f" ({phase.name})" if phase.name != "step" else ""
    terms = [*_operator_terms(phase, part, ending), *_collective_terms(phase, time, part, ending)]
    yield from terms
    rest = mean(time.parts.get(part, 0.0) * phase.runs) - sum(term.value for term in terms)
    if part == "overhead":
        share = phase.schedule.repeats / phase.schedule.stages if ending else 1.0
        fixed = mean(phase.fixed_seconds * share * phase.runs)
        yield Term(f"host time of a {'pass' if ending else 'step'}{ending}", fixed)
        yield Term(f"waiting for kernels to be launched{ending}", max(0.0, rest - fixed))
    elif part == "pipeline_bubble":
        yield Term(f"waiting for other stages{ending}", rest)


def _operator_terms(phase: Phase, part: str, ending: str) -> Iterator[Term]:
    for operator in phase.operators:
        at_end = operator.where == "step"
        if ("optimizer" if at_end else operator.part) != part:
            continue
        runs = mean(operator.count * phase.runs * (1.0 if at_end else phase.schedule.repeats))
        name = f"{operator.name}{ending or f' ({operator.phase})'}"
        yield _operator_term(operator, name, runs, mean(phase.schedule.share(operator.where)))


def _operator_term(operator: Operator, name: str, runs: float, share: float) -> Term:
    derivation = _operator_derivation(operator, runs, share)
    return Term(name, mean(derivation.result), _operator_detail(operator, runs, share), derivation)


def _operator_derivation(operator: Operator, runs: float, share: float) -> Derivation:
    """Return the seconds of all runs of an operator as an equation; the limit that it meets comes first."""

    def traced(name: str, value: Number, unit: str, meaning: str) -> Input:
        derivation = origin(value, OPERATOR_ORIGINS.get(name, ()), operator.recorded)
        return Input(name, mean(value), unit, meaning, derivation)

    arithmetic = (
        traced("rate", operator.rate, "FLOP/s", "FLOP/s the kernel reaches"),
        traced("flops", operator.flops, "FLOP", "FLOPs of one run"),
    )
    memory = (
        traced("bytes", operator.bytes, "B", "bytes one run moves"),
        traced("bandwidth", operator.bandwidth, "B/s", "bytes a second the kernel moves"),
    )
    is_arithmetic = mean(operator.flops / operator.rate) >= mean(operator.bytes / operator.bandwidth)
    limits = (*arithmetic, *memory) if is_arithmetic else (*memory, *arithmetic)
    return Derivation(
        name="operator_seconds",
        part="",
        formula="seconds = max(flops / rate, bytes / bandwidth) · runs · share",
        inputs=(
            *limits,
            Input("runs", runs, "", "runs of a step or a batch"),
            Input("share", share, "", "share of them that falls on the mean pipeline stage"),
        ),
        result=mean(operator_seconds(operator)) * runs * share,
        unit="s",
        source="roofline: the larger of arithmetic and memory time (Williams et al. 2009)",
    )


def _operator_detail(operator: Operator, runs: float, share: float) -> str:
    """Say how often an operator runs, at what rate, and which limit it meets."""
    flops, rate = mean(operator.flops), mean(operator.rate)
    traffic, bandwidth = mean(operator.bytes), mean(operator.bandwidth)
    times = _times(runs, "run")
    stages = f", on one of {format_number(1.0 / share)} stages" if share < 1 else ""
    memory = f"{format_bytes(traffic, 'MB')} at {format_bandwidth(bandwidth)}"
    if not flops:
        return f"{times} of {memory}{stages}"
    bound = "arithmetic" if flops / rate >= traffic / bandwidth else "memory"
    arithmetic = f"{format_flops(flops)} at {format_flops(rate, per_second=True)}"
    return f"{times} of {arithmetic}, {memory}: bound by {bound}{stages}"


def _times(number: float, word: str) -> str:
    """Return how often something happens, in words: ``1 run``, ``5 120 times``."""
    digits = format_number(number, 0 if float(number).is_integer() else 1)
    return f"{digits} {word}{'' if number == 1 else 's'}"


def _collective_terms(phase: Phase, time: PhaseTime, part: str, ending: str) -> Iterator[Term]:
    """Yield communication as far as nothing hides it."""
    for sending in sent(phase, time):
        if sending.collective.part == part:
            name = f"{sending.collective.name}{ending}"
            derivation = origin(sending.collective.seconds, COLLECTIVE_ORIGINS, sending.collective.recorded)
            yield Term(name, sending.exposed, _collective_detail(sending), derivation)


def _collective_detail(sending: Sent) -> str:
    hidden = format_percent(max(0.0, 1.0 - sending.exposed / sending.seconds) if sending.seconds else 0.0)
    return f"{_times(sending.runs, 'time')} {format_bytes(mean(sending.collective.bytes), 'MB')}, {hidden} of it hidden"


_SUMMED: Mapping[str, str] = {
    Figure.PREFILL_TOKENS_PER_SECOND: "prefill",
    Figure.TIME_TO_FIRST_TOKEN_SECONDS: "prefill",
    Figure.DECODE_TOKENS_PER_SECOND: "decode",
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS: "decode",
}
"""Figures of a batch that are the sum of one of its phases."""


def _serving_sum(key: str, estimate: Estimate) -> Sum | None:
    """Return the parts of prefill, or of one decode step; None under a load, where requests wait for each other."""
    served, wanted = estimate.work.served, _SUMMED.get(key)
    if wanted is None or served is None or served.loaded is not None or np.any(np.asarray(served.accepted) != 1):
        return None
    for phase, time in zip(estimate.work.phases, estimate.computation.phases, strict=True):
        if phase.name == wanted:
            once = replace(phase, runs=1.0)
            parts = [
                Term(part_label(part), mean(seconds), sum=_sum(_phase_terms(once, time, part), "s"))
                for part, seconds in time.parts.items()
            ]
            if key == Figure.TIME_TO_FIRST_TOKEN_SECONDS and served.host_seconds:
                parts.append(
                    Term("host time of a request", mean(served.host_seconds), "taken in, and its first text sent")
                )
            return _sum(parts, "s", "" if key.endswith("_seconds") else "seconds")
    return None
