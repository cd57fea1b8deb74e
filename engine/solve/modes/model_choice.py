"""Choose the model: the largest a mode's hours, parameters and memory allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from capacity_tui.engine.catalog import Architecture, Catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan, with_values
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes.mode_plan import ModePlan, Settled
from capacity_tui.engine.units import format_count, format_seconds
from capacity_tui.engine.verdict import Verdict

HOUR = 3600.0
# A mode whose hours are open above still ends: this many times their lower bound (this program's choice).
OPEN_HOURS = 4.0
# A model called 70M may have 70.4 million parameters.
ROUNDING = 1.02
# A size that takes too long is followed by this share of it.
SMALLER = 0.95
# Bytes of weights, gradients and states of one trained parameter at the least: 16-bit everything, 8-bit Adam.
LEAST_BYTES_PER_PARAMETER = 6.0
# Operations of a token for each parameter: forwards and backwards; adapters need no gradients of frozen weights.
FLOPS_PER_PARAMETER, LEAST_FLOPS_PER_PARAMETER = 6.0, 4.0
FINETUNED = "finetune"
# Sums of a search and of an estimate may differ in their last digits.
MARGIN = 1.0 + 1e-6


def choose_model(
    plan: Plan, mode: Mode, cluster: Cluster, catalog: Catalog, settle: Callable[[Plan], Settled]
) -> tuple[ModePlan, str]:
    """Return the plan with a model in place of ``auto``, filled and estimated, and why that model was chosen."""
    lower, upper = mode.training_hours_range
    hours = upper or OPEN_HOURS * (lower or 1.0)
    rows = _candidates(mode, cluster, catalog)
    settled = cache(lambda name: settle(_named(plan, name)))
    for row in rows:
        if not _may_end(row, plan, mode, cluster, hours):
            continue
        candidate = settled(row.id)
        # What takes too long by its steps alone needs no estimate.
        if candidate.least_seconds > hours * HOUR * MARGIN:
            continue
        seconds = job_seconds(candidate.filled)
        if (
            candidate.filled.estimate.verdict is not Verdict.DOES_NOT_FIT
            and seconds is not None
            and seconds <= hours * HOUR
        ):
            size = format_count(float(row.params_total or 0))
            time = format_seconds(seconds)
            return candidate.filled, f"largest model that trains within the mode's {hours:g} h: {size}, {time}"
    tried = (settled(row.id).filled for row in reversed(rows))
    smallest = next((filled for filled in tried if filled.estimate.verdict is not Verdict.DOES_NOT_FIT), None)
    by_count = _by_count(plan, mode, hours, settle)
    if by_count is not None and (smallest is None or _size(by_count[0]) * ROUNDING < _size(smallest)):
        return by_count
    if smallest is None:
        chosen = settle(_named(plan, smallest_model(catalog))).filled
        return chosen, "nothing in the mode's range fits; this is the smallest model in the catalogue"
    return _shortened(plan, smallest, hours, settle)


def smallest_model(catalog: Catalog) -> str:
    """Return the id of the smallest language model of the catalogue."""
    return min(_sized(catalog), key=lambda entry: entry.params_total or 0).id


def job_seconds(filled: ModePlan) -> float | None:
    """Return the length of the whole job; None where it is open."""
    computation = filled.estimate.computation
    return None if computation.steps is None else float(computation.steps * computation.step_seconds.value)


def _shortened(plan: Plan, smallest: ModePlan, hours: float, settle: Callable[[Plan], Settled]) -> tuple[ModePlan, str]:
    """Return the smallest model with as many tokens as the mode's hours allow."""
    seconds = job_seconds(smallest)
    tokens = smallest.plan.training.tokens
    if seconds is None or not isinstance(tokens, float) or plan.training.tokens != AUTO:
        return smallest, "smallest model of the mode's range"
    cut = _rounded_down(tokens * hours * HOUR / seconds)
    why = f"smallest of the mode's models; all its tokens would take {format_seconds(seconds)}, cut to {hours:g} h"
    named = _named(plan, str(smallest.plan.model.name))
    filled = settle(with_values(named, {Key.TRAINING_TOKENS: cut})).filled
    return replace(filled, reasons={**filled.reasons, Key.TRAINING_TOKENS: f"as many as end within {hours:g} h"}), why


def _by_count(plan: Plan, mode: Mode, hours: float, settle: Callable[[Plan], Settled]) -> tuple[ModePlan, str] | None:
    """Return the largest decoder of usual proportions that ends in time, or the mode's smallest with fewer tokens.

    None where the mode has no smallest, or where not even that fits. Time grows as the square of the size, since tokens
    grow with it.
    """
    least = mode.parameters_range[0]
    if not least:
        return None
    smallest = settle(_named(plan, _count_name(least)))
    seconds = job_seconds(smallest.filled)
    if smallest.filled.estimate.verdict is Verdict.DOES_NOT_FIT or seconds is None:
        return None
    size = _rounded_down(least * math.sqrt(hours * HOUR / seconds))
    size = min(size, mode.parameters_range[1] or size)
    while size > least:
        larger = settle(_named(plan, _count_name(size))).filled
        taken = job_seconds(larger)
        if larger.estimate.verdict is not Verdict.DOES_NOT_FIT and taken is not None and taken <= hours * HOUR:
            why = f"no known model of the mode ends within {hours:g} h; largest decoder of usual proportions that does"
            return larger, f"{why}: {format_seconds(taken)}"
        size = _rounded_down(size * SMALLER)
    return _shortened(plan, smallest.filled, hours, settle)


def _size(filled: ModePlan) -> float:
    return largest(filled.estimate.model.parameters)


def _count_name(parameters: float) -> str:
    """Return the name of a decoder by the count of its parameters alone."""
    return f"{parameters / 1e6:g}M"


def _rounded_down(value: float) -> float:
    """Return a number cut to two digits, so that what it takes stays inside a limit."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / digit) * digit


def _named(plan: Plan, name: str) -> Plan:
    return with_values(plan, {Key.MODEL_NAME: name})


def _sized(catalog: Catalog) -> list[Architecture]:
    rows = (row for row in catalog.architectures.values() if row.kind == "decoder" and row.params_total)
    return sorted(rows, key=lambda row: -(row.params_total or 0))


def _candidates(mode: Mode, cluster: Cluster, catalog: Catalog) -> list[Architecture]:
    """Return the models of the mode's range that could fit at all, largest first; the smallest known without any."""
    low, high = mode.parameters_range
    memory = cluster.device.memory_bytes
    room = math.inf if memory is None else float(memory * cluster.devices)

    def could_fit(row: Architecture) -> bool:
        size = float(row.params_total or 0)
        is_inside = (low or 0.0) / ROUNDING <= size <= (high or math.inf) * ROUNDING
        return is_inside and size * LEAST_BYTES_PER_PARAMETER <= room

    sized = _sized(catalog)
    return [row for row in sized if could_fit(row)] or sized[-1:]


def _may_end(row: Architecture, plan: Plan, mode: Mode, cluster: Cluster, hours: float) -> bool:
    """Whether the operations of a training end in time at the peak of the devices."""
    training = plan.training
    if any(length is not None for length in (training.steps, training.samples)):
        return True
    size, active = float(row.params_total or 0), float(row.params_active or row.params_total or 0)
    tokens = training.tokens if isinstance(training.tokens, int | float) else size * mode.tokens_per_parameter
    flops = float(cluster.devices) * max(cluster.device.peaks.values()) * hours * HOUR
    return (LEAST_FLOPS_PER_PARAMETER if plan.task == FINETUNED else FLOPS_PER_PARAMETER) * active * tokens <= flops
