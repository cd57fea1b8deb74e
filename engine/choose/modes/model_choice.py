"""Choose the model: the largest a mode's hours, parameters and memory allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capacity_tui.engine.catalog import Architecture, Catalog
from capacity_tui.engine.catalog.rows.modes import Mode
from capacity_tui.engine.choose.modes.filled import ModePlan
from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.plan import AUTO, Plan
from capacity_tui.engine.units import format_count, format_seconds

HOUR = 3600.0
# A mode whose hours are open above still ends: this many times their lower bound (this program's choice).
OPEN_HOURS = 4.0
# A model called 70M may have 70.4 million parameters.
ROUNDING = 1.02
# Bytes of weights, gradients and states of one trained parameter at the least: 16-bit everything, 8-bit Adam.
LEAST_BYTES_PER_PARAMETER = 6.0


def choose_model(
    plan: Plan, mode: Mode, cluster: Cluster, catalog: Catalog, fill: Callable[[Plan], ModePlan]
) -> tuple[Plan, str]:
    """Return the plan with a model in place of ``auto``, and why it was chosen.

    Args:
        plan: a plan whose ``model.name`` is ``auto``.
        mode: the mode's ranges of parameters and hours.
        cluster: the hardware.
        catalog: where models come from.
        fill: fills and estimates a plan that names its model.
    """
    lower, upper = mode.training_hours_range
    hours = upper or OPEN_HOURS * (lower or 1.0)
    smallest: ModePlan | None = None
    for row in _candidates(mode, cluster, catalog, hours):
        filled = fill(_named(plan, row.id))
        seconds = job_seconds(filled)
        if filled.estimate.held is not False and (smallest is None or plan_size(filled) < plan_size(smallest)):
            smallest = filled
        if filled.estimate.held is not False and seconds is not None and seconds <= hours * HOUR:
            size = format_count(float(row.params_total or 0))
            time = format_seconds(seconds)
            return _named(plan, row.id), f"largest model that trains within the mode's {hours:g} h: {size}, {time}"
    if smallest is None:
        return _named(
            plan, smallest_model(catalog)
        ), "nothing of the mode's range fits; this is the smallest model of the catalogue"
    return _shortened(plan, smallest, hours)


def smallest_model(catalog: Catalog) -> str:
    """Return the id of the smallest language model of the catalogue."""
    return min(_sized(catalog), key=lambda entry: entry.params_total or 0).id


def plan_size(filled: ModePlan) -> float:
    """Return the parameters of a filled plan's model."""
    return float(filled.estimate.model.parameters)


def job_seconds(filled: ModePlan) -> float | None:
    """Return the length of the whole job; None where it is open."""
    computation = filled.estimate.computation
    return None if computation.steps is None else float(computation.steps * computation.step_seconds.value)


def _shortened(plan: Plan, smallest: ModePlan, hours: float) -> tuple[Plan, str]:
    """Return the smallest model with as many tokens as the mode's hours allow."""
    seconds = job_seconds(smallest)
    named = _named(plan, str(smallest.plan.model.name))
    tokens = smallest.plan.training.tokens
    if seconds is None or not isinstance(tokens, float) or plan.training.tokens != AUTO:
        return named, "smallest model of the mode's range"
    cut = float(f"{tokens * hours * HOUR / seconds:.2g}")
    why = f"smallest of the mode's models; all its tokens would take {format_seconds(seconds)}, cut to {hours:g} h"
    return with_values(named, {"training.tokens": cut}), why


def _named(plan: Plan, name: str) -> Plan:
    return with_values(plan, {"model.name": name})


def _sized(catalog: Catalog) -> list[Architecture]:
    rows = (row for row in catalog.architectures.values() if row.kind == "decoder" and row.params_total)
    return sorted(rows, key=lambda row: -(row.params_total or 0))


def _candidates(mode: Mode, cluster: Cluster, catalog: Catalog, hours: float) -> Iterator[Architecture]:
    """Yield models of the mode's range, largest first, that could fit and end in time at all."""
    low, high = mode.parameters_range
    yielded = False
    memory = cluster.device.memory_bytes
    room = None if memory is None else float(memory * cluster.devices)
    flops = float(cluster.devices) * max(cluster.device.peaks.values()) * hours * HOUR
    for row in _sized(catalog):
        size, active = float(row.params_total or 0), float(row.params_active or row.params_total or 0)
        if not (low or 0.0) / ROUNDING <= size <= (high or float("inf")) * ROUNDING:
            continue
        if room is not None and size * LEAST_BYTES_PER_PARAMETER > room:
            continue
        if 6.0 * active * size * mode.tokens_per_parameter > flops and size > 2.0 * (low or 0.0):
            continue
        yielded = True
        yield row
    if not yielded:
        yield _sized(catalog)[-1]
