"""What a change does to the figures, and many changes estimated at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import (
    METRICS,
    Estimate,
    Metric,
    ResolvedPlan,
    central,
    estimate_resolved,
    estimate_run,
    evidence_before,
    figure,
    plan_limits,
    resolve_plan,
)
from capacity_tui.engine.estimate.serving import ServingRun, serving_run
from capacity_tui.engine.estimate.transformer import TransformerRun, transformer_run
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import largest, mean
from capacity_tui.engine.plan import Values, all_fields, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import Section
from capacity_tui.engine.solve.space.axes import Floats
from capacity_tui.engine.solve.space.stacking import can_stack, stacked, unstacked
from capacity_tui.engine.units import format_percent, format_quantity

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.uncertainty import Evidence

_NOTHING = 1e-6  # Changes smaller than this are the arithmetic's, not the machine's
_WORTH_TELLING = 0.005


def value_of(estimate: Estimate, key: str) -> float | None:
    """Return a figure without its range; None where there is none."""
    if key == Figure.TOKENS_PER_SECOND and estimate.computation.unit != "token":
        return None
    return figure(estimate, key).number


def saves(before: Estimate, after: Estimate) -> dict[str, float]:
    """Return what changes, by result key: new value minus old."""
    savings: dict[str, float] = {}
    for key in _compared(before, after):
        old, new = value_of(before, key), value_of(after, key)
        if old is not None and new is not None and abs(new - old) > _NOTHING * max(abs(old), abs(new)):
            savings[key] = new - old
    return savings


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to one figure."""

    metric: Metric  # the figure, in the words of the run
    before: float
    after: float

    @property
    def text(self) -> str:
        """The value with the change."""
        return format_quantity(self.after, self.metric.unit)

    @property
    def percent(self) -> str:
        """The difference, with its sign; empty where there was nothing before."""
        return _signed(self.after / self.before - 1.0) if self.before else ""

    @property
    def gain(self) -> int:
        """1 where the figure got better, -1 where it got worse, 0 where neither is said of it."""
        return self.metric.better * (1 if self.after > self.before else -1)


def effects(before: Estimate, after: Estimate) -> Iterator[Effect]:
    """Yield what changes by more than nothing: time or speed, memory, money."""
    compared = set()
    for key in _compared(before, after):
        subject, old, new = METRICS[key].topic, value_of(before, key), value_of(after, key)
        if not subject or subject in compared or old is None or new is None:
            continue
        compared.add(subject)
        if abs(new - old) > _WORTH_TELLING * abs(old):
            yield Effect(figure(before, key).metric, old, new)


def effect_text(before: Estimate, after: Estimate) -> str:
    """Return the change in words."""
    return ", ".join(map(_effect_text, effects(before, after)))


def _effect_text(effect: Effect) -> str:
    percent = f" ({effect.percent})" if effect.percent else ""
    return (
        f"{effect.metric.name} {effect.text} instead of {format_quantity(effect.before, effect.metric.unit)}{percent}"
    )


def _compared(before: Estimate, after: Estimate) -> tuple[str, ...]:
    """Return the keys of the figures that a change is judged by; those of the job only where it is the same work."""
    kinds = ("all", "same work") if _same_work(before, after) else ("all",)
    return tuple(metric.key for metric in METRICS.values() if metric.difference in kinds)


def _same_work(before: Estimate, after: Estimate) -> bool:
    """Whether both jobs work through as many tokens or samples, to a hundredth."""
    old, new = _units(before), _units(after)
    if old is None or new is None:
        return False
    return abs(new - old) <= 0.01 * old


def _units(estimate: Estimate) -> float | None:
    computation = estimate.computation
    return None if computation.steps is None else mean(computation.steps * computation.units_per_step)


def plain_change(change: Mapping[str, object]) -> dict[str, object]:
    return {
        path: value.model_dump(mode="json") if isinstance(value, Section) else value for path, value in change.items()
    }


def change_text(change: Mapping[str, object]) -> str:
    """Return the fields to set, as the command line takes them."""
    return ", ".join(f"{path}={_written(value)}" for path, value in plain_change(change).items())


def setting_words(change: Mapping[str, object]) -> str:
    """Return what to set in the words of the screen."""
    known = all_fields()
    named = ((known[path].knob.label if path in known else path, value) for path, value in plain_change(change).items())
    return "Set " + ", ".join(f"{label} {_written(value)}" for label, value in named)


def _written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(entry)}" for key, entry in value.items()) + "}"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _signed(share: float) -> str:
    text = format_percent(share)
    return text if share < 0 else f"+{text}"


def reserved_bytes(estimate: Estimate) -> float:
    """Return the bytes on the fullest device."""
    return largest(estimate.memory.reserved_bytes.value)


def unit_seconds(estimate: Estimate) -> float:
    """Return the seconds of one token or sample."""
    computation = estimate.computation
    return mean(computation.step_seconds.value / computation.units_per_step)


def cost_ratio(after: Estimate, before: Estimate) -> float:
    """Return how many times as dear a token or sample is: in money, in seconds where devices are free of charge.

    Where not both have a price, device-seconds stand for money.
    """
    priced = None not in (after.cost.usd_per_million_tokens, before.cost.usd_per_million_tokens)
    return _unit_cost(after, priced) / _unit_cost(before, priced)


def _unit_cost(estimate: Estimate, priced: bool) -> float:
    usd = estimate.cost.usd_per_million_tokens
    if not priced or usd is None:
        return unit_seconds(estimate) * mean(estimate.computation.devices)
    return mean(usd) or unit_seconds(estimate)


Run: TypeAlias = TransformerRun | ServingRun
_ELSEWHERE = ("model.", "hardware.", "pricing.")  # What these fields say is looked up anew


@dataclass(frozen=True, slots=True)
class StackedEstimate:
    """Variants that one estimate of arrays covers."""

    indices: tuple[int, ...]  # which of the variants asked for these are, in the order of the arrays
    estimate: Estimate

    def numbers(self, key: str) -> Floats | None:
        """Return a figure of each of them; None where they have none of this key."""
        value = central(figure(self.estimate, key).value)
        if value is None:
            return None
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (len(self.indices),))


def estimate_stacked(
    variants: Sequence[ResolvedPlan], catalog: Catalog, *, with_ranges: bool = False
) -> list[StackedEstimate]:
    """Estimate variants of a plan in as few calls as there are kinds of them; what cannot run is left out.

    Args:
        with_ranges: whether figures have ranges; variants that name other things are then estimated apart.
    """
    groups: list[tuple[list[int], list[Run], Evidence | None]] = []
    estimates: list[StackedEstimate] = []
    for index, resolved in enumerate(variants):
        try:
            run = _run(resolved, catalog)
            if run is None:
                estimates.append(StackedEstimate((index,), estimate_resolved(resolved, catalog)))
        except CapacityError:
            continue
        if run is None:
            continue
        evidence = evidence_before(resolved, catalog) if with_ranges else None
        for indices, runs, theirs in groups:
            is_alike = _named(evidence) == _named(theirs) and _same_job(resolved, variants[indices[0]])
            if is_alike and can_stack(run, runs[0]):
                indices.append(index)
                runs.append(run)
                break
        else:
            groups.append(([index], [run], evidence))
    for indices, runs, evidence in groups:
        run = stacked(runs, (len(runs),)) if len(runs) > 1 else runs[0]
        plan = variants[indices[0]].plan
        estimates.append(StackedEstimate(tuple(indices), estimate_run(run, plan, evidence)))
    return estimates


def _named(evidence: Evidence | None) -> tuple[object, ...]:
    """Return what ranges rest on apart from numbers, which are each run's own."""
    if evidence is None:
        return ()
    own = None if evidence.own is None else evidence.own[1].words
    known = evidence.here, evidence.known, evidence.networks
    return evidence.features.words, evidence.flags, own, known, evidence.least_rate, evidence.kind


def estimate_changes(
    plan: Plan, changes: Sequence[Values], machine: Machine | None = None, catalog: Catalog | None = None
) -> tuple[Estimate | CapacityError, ...]:
    """Estimate a plan with each of several changes; what cannot be is an error.

    Args:
        changes: new values by path, as a file or a person writes them; they fill what the plan leaves open.
    """
    facts = catalog or load_catalog()
    base = _resolved(plan, facts, machine)
    estimates: dict[int, Estimate | CapacityError] = {}
    variants: list[tuple[int, ResolvedPlan]] = []
    for number, change in enumerate(changes):
        is_elsewhere = any(path.startswith(_ELSEWHERE) for path in change)
        try:
            changed = edited(plan, change, facts).plan
            resolved = resolve_plan(changed, facts, machine, None if is_elsewhere else base)
        except CapacityError as error:
            estimates[number] = error
            continue
        variants.append((number, resolved))
    for together in estimate_stacked([resolved for _, resolved in variants], facts, with_ranges=True):
        for index, estimate in zip(together.indices, unstacked(together.estimate, len(together.indices)), strict=True):
            number, resolved = variants[index]
            estimates[number] = replace(estimate, limits=plan_limits(resolved.plan, estimate))
    for number, resolved in variants:
        if number not in estimates:
            estimates[number] = _alone(resolved, facts)
    return tuple(estimates[number] for number in range(len(changes)))


def _resolved(plan: Plan, catalog: Catalog, machine: Machine | None) -> ResolvedPlan | None:
    """Return a plan with what its names stand for; None where it leaves open what changes fill."""
    try:
        return resolve_plan(plan, catalog, machine)
    except CapacityError:
        return None


def _alone(resolved: ResolvedPlan, catalog: Catalog) -> Estimate | CapacityError:
    try:
        return estimate_resolved(resolved, catalog)
    except CapacityError as error:
        return error


def _run(resolved: ResolvedPlan, catalog: Catalog) -> Run | None:
    """Return the run of a transformer; None for other kinds of models."""
    if resolved.shape is None:
        return None
    if resolved.plan.is_inference:
        return serving_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
    return transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)


def _same_job(one: ResolvedPlan, other: ResolvedPlan) -> bool:
    """Whether two plans ask for as much work, at the same prices, in the type whose measured rates they share."""
    a, b = one.plan.training, other.plan.training
    measured = bool(one.cluster.device.efficiency.curves)
    return (
        (a.steps, a.tokens, a.epochs, a.samples) == (b.steps, b.tokens, b.epochs, b.samples)
        and one.plan.pricing == other.plan.pricing
        and not (measured and a.precision != b.precision)
    )
