"""Why a number is what it is: formula, the numbers put in, sources, assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import figure_label
from capacity_tui.engine.estimate import (
    Derivation,
    Estimate,
    FigureValue,
    ResolvedPlan,
    figure,
    named_figure,
    recording,
)
from capacity_tui.engine.estimate.transformer import base_format
from capacity_tui.engine.explain.terms import Sum, Term, sum_of
from capacity_tui.engine.keys import Figure, Parts
from capacity_tui.engine.models import PluginSpec
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_money, format_seconds

# Where every parameter is active, one formula gives both.
SAME_FORMULA: Mapping[str, str] = {Figure.MODEL_ACTIVE_PARAMETERS: Figure.MODEL_PARAMETERS}

# Figures of the model and of the datasheet: no measured constant goes into them.
WITHOUT_CONSTANTS = ("model.", "bottleneck.")

MOST_DERIVATIONS = 4  # A part that several phases evaluate shows no more of its equations than these


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything behind one number."""

    figure: FigureValue  # the number, with its name, unit and range
    sum: Sum | None  # what it, or the number its formula starts from, is the sum of
    # the equations evaluated for it, with the numbers put in; each opens into earlier ones
    derivations: tuple[Derivation, ...]
    remarks: tuple[str, ...]  # what no formula says: why it is zero or missing, where a given number comes from
    interval_basis: str  # where the interval comes from, empty where there is none
    calibration: str  # which measured constants went in
    assumed: tuple[str, ...]  # what was not given

    @property
    def key(self) -> str:
        return self.figure.metric.key

    @property
    def terms(self) -> tuple[Term, ...]:
        """The addends of the sum."""
        return () if self.sum is None else self.sum.terms


def explain_estimate(resolved: ResolvedPlan, estimate: Estimate, name: str, catalog: Catalog) -> Explanation:
    """Explain one figure from its estimate's own work and the equations it recorded; nothing is computed again."""
    key = named_figure(name, estimate, str(resolved.plan.task))
    with recording(after=estimate.derivations) as record:
        value = figure(estimate, key)
        summed = sum_of(key, resolved, estimate, catalog)
    return Explanation(
        figure=value,
        sum=summed,
        derivations=_derivations(record, SAME_FORMULA.get(key, key), value.number),
        remarks=tuple(remarks(value, resolved, estimate, catalog)),
        interval_basis=estimate.range_of(key).basis if isinstance(value.value, Interval) else "",
        calibration="" if key.startswith(WITHOUT_CONSTANTS) else estimate.basis.calibration,
        assumed=estimate.basis.assumed,
    )


def _derivations(record: Iterable[Derivation], key: str, value: float | None) -> tuple[Derivation, ...]:
    """Return the equations evaluated for a key, each once: that which gave the result, else all that led to it."""
    evaluated: list[Derivation] = []
    for derivation in record:
        if derivation.part == key and derivation not in evaluated:
            evaluated.append(derivation)
    exact = [
        derivation
        for derivation in evaluated
        if value is not None and np.allclose(mean(derivation.result), value, rtol=1e-9, atol=0)
    ]
    return tuple(exact[:1] or (evaluated[:MOST_DERIVATIONS] if value else ()))


HARDWARE_BEHIND: Mapping[str, str] = {
    Figure.MEMORY_CAPACITY_BYTES: "memory_bytes",
    Figure.BOTTLENECK_RIDGE_POINT: "bandwidth",
    Figure.ENERGY_WATTS_AVERAGE: "tdp_watts",
}
"""The figure of the hardware that a result is, or rests on."""

HIDDEN = "all of it runs behind kernels and their launches"

# What would bring a figure about, by the reason why there is none.
_REMEDIES = {
    "length is open": "give tokens, steps, or epochs and samples",
    "no price known": "give pricing.usd_per_hour",
    "power limit not known": "give hardware.spec.tdp_w",
    "memory size not known": "give hardware.spec.memory_mib",
}


def remarks(figure: FigureValue, resolved: ResolvedPlan, estimate: Estimate, catalog: Catalog) -> Iterator[str]:
    """Yield what to know about a figure, one line each."""
    key, number = figure.metric.key, figure.number
    if number is None:
        remedy = _REMEDIES.get(figure.absence)
        yield f"{figure.absence}: {remedy}" if remedy else figure.absence
        return
    if number == 0:
        yield _zero(key, resolved, estimate)
    if (
        key.startswith("memory.")
        and key not in {Figure.MEMORY_CAPACITY_BYTES, Figure.MEMORY_HOST_BYTES}
        and estimate.memory.peak
    ):
        yield f"at the peak of memory: {estimate.memory.peak}"
    if key == Figure.MEMORY_WEIGHTS:
        yield from _stored(resolved, catalog)
    yield from _origin(key, resolved, estimate)


def _stored(resolved: ResolvedPlan, catalog: Catalog) -> Iterator[str]:
    """Say how many bits the format of the layers' weights takes, block constants included."""
    name = resolved.plan.inference.weights_format if resolved.plan.is_inference else base_format(resolved.plan.training)
    row = catalog.quantizations.find(name) if name and resolved.shape is not None else None
    if row is not None and row.block and row.body_bits:
        yield f"{row.name}: {row.block}, {row.body_bits:g} bits a weight in the layers"


def _origin(key: str, resolved: ResolvedPlan, estimate: Estimate) -> Iterator[str]:
    """Say where a number comes from that no formula gives."""
    device = resolved.cluster.device
    behind = HARDWARE_BEHIND.get(key, "")
    if behind in device.known:
        yield f"{figure_label(behind)} of {device.name}: {device.known[behind]}"
    if key == Figure.MEMORY_HOST_BYTES and resolved.plan.is_fit:
        yield "the data lie in host memory until they are copied to the device"
    if key in {Figure.CARBON_KG, Figure.CARBON_GRAMS_PER_KWH}:
        yield f"grid: {estimate.energy.grid}"
    if key.startswith("cost.") and key != Figure.COST_GPU_HOURS:
        usd = estimate.cost.usd_per_hour
        hour = format_money(None if usd is None else mean(usd))
        yield f"{hour} an hour for {resolved.cluster.words}: {estimate.cost.source}"
        price = resolved.cluster.price
        if price.interruptions is not None and (key == Figure.COST_USD_SPOT or price.is_spot):
            between = format_seconds(price.interruptions.seconds_between)
            yield f"assumed: {price.interruptions.words}; this job is interrupted every {between}"
    if isinstance(resolved.spec, PluginSpec):
        yield f"as the plug-in of {resolved.family.id} says"
    elif key.startswith("model."):
        model = resolved.plan.model
        name = f"read from {model.config}" if model.config else f"sizes of {resolved.family.id} in the catalogue"
        changed = f", with {', '.join(model.spec)} of the plan" if model.spec and resolved.shape is not None else ""
        yield name + changed if resolved.shape is not None else f"complexity of the family: {estimate.model.complexity}"


def _zero(key: str, resolved: ResolvedPlan, estimate: Estimate) -> str:
    """Say in one line why a figure is zero."""
    group, _, part = key.rpartition(".")
    if group == Parts.MEMORY:
        return _no_memory(part, resolved, estimate.memory.peak)
    if group == Parts.COMPUTATION:
        return _no_time(part, resolved)
    return "nothing is kept in host memory" if key == Figure.MEMORY_HOST_BYTES else "nothing counts towards it"


def _no_memory(part: str, resolved: ResolvedPlan, peak: str) -> str:
    offload = resolved.plan.parallelism.offload
    if part == "optimizer" and offload in {"optimizer", "parameters"}:
        return f"the optimizer's states are kept in host memory: offload {offload}"
    if part == "weights" and offload == "parameters":
        return f"weights are kept in host memory: offload {offload}"
    if part in {"gradients", "optimizer"} and not resolved.plan.is_training:
        return "nothing is trained"
    reasons = {
        "optimizer": "the optimizer keeps no states, or memory peaks before they exist",
        "buffers": "nothing is gathered, and no buckets are reduced",
        "kv_cache": "the model generates no tokens" if resolved.plan.is_inference else "only serving keeps one",
        "copies": "the library works on the table itself",
        "context": "a processor has no driver context",
        "reserve": "the allocator holds nothing beyond its peak",
    }
    if resolved.plan.is_fit:
        return "a classical fit keeps its data, copies, work and model instead"
    return reasons.get(part, f"memory peaks {peak}, where there are none")


def _no_time(part: str, resolved: ResolvedPlan) -> str:
    parallel = resolved.plan.parallelism
    replicas = int(parallel.dp or 1) * int(parallel.cp)
    sizes = {
        "tensor_parallel": (parallel.tp, "tensor parallelism is 1: no layer is split over devices"),
        "context_parallel": (parallel.cp, "context parallelism is 1: no sequence is split over devices"),
        "expert_parallel": (parallel.ep, "expert parallelism is 1: every device has all experts of its layers"),
        "data_parallel": (replicas, "one replica: there are no gradients to reduce"),
        "pipeline_bubble": (parallel.pp, "one pipeline stage: no device waits for another"),
    }
    if resolved.plan.is_inference and part in {"data_parallel", "optimizer"}:
        return "nothing is trained: replicas serve by themselves"
    if part in sizes:
        size, reason = sizes[part]
        return HIDDEN if int(size or 1) > 1 else reason
    reasons = {
        "attention": "the model has no attention",
        "optimizer": "no parameter is trained" if resolved.plan.is_training else "no optimizer runs",
        "overhead": "kernels take longer than their launches",
    }
    return reasons.get(part, "nothing counts towards it")
