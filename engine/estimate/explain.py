"""Why a number is what it is: formula, the numbers put in, sources, assumptions, strongest lever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.equation import Derivation, recording
from capacity_tui.engine.estimate.estimate import estimate_settled, work_of
from capacity_tui.engine.estimate.figures import FIGURES, Figure, central, figure
from capacity_tui.engine.estimate.resolve import Settled, settle
from capacity_tui.engine.estimate.result import Estimate, Interval
from capacity_tui.engine.estimate.roofline import operator_seconds
from capacity_tui.engine.estimate.work import Operator, Work
from capacity_tui.engine.hardware.machine import Machine
from capacity_tui.engine.workload.fields import plan_fields
from capacity_tui.engine.workload.plan import Plan

MORE_IS_BETTER = frozenset(
    key for key in FIGURES if key.endswith(("per_second", "per_second_per_device", "mfu", "arithmetic_intensity"))
)
# Which software runs is a fact about the job, and its length is the wish: neither is a lever.
NOT_LEVERS = frozenset({"training.framework", "inference.engine", "training.tokens", "training.steps"})


@dataclass(frozen=True, slots=True)
class Term:
    """One addend of a number.

    Attributes:
        name: what it is.
        value: its size in the number's unit.
        detail: how it comes about, with figures.
    """

    name: str
    value: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Lever:
    """The knob that would improve a number most with one step.

    Attributes:
        field: plan path.
        label: its name.
        before: value now.
        after: value one step away.
        change: relative change of the number, -0.5 for half.
    """

    field: str
    label: str
    before: str
    after: str
    change: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything behind one number.

    Attributes:
        key: result key.
        title: what it is called.
        unit: its unit.
        value: the number, with its interval where it has one.
        terms: what it is the sum of.
        derivations: the equations evaluated for it, with the numbers put in.
        calibration: which measured constants went in.
        assumed: what was not given.
        lever: the strongest knob.
    """

    key: str
    title: str
    unit: str
    value: Figure
    terms: tuple[Term, ...]
    derivations: tuple[Derivation, ...]
    calibration: str
    assumed: tuple[str, ...]
    lever: Lever | None


def explain(plan: Plan, key: str, machine: Machine | None = None, catalog: Catalog | None = None) -> Explanation:
    """Explain one figure of a plan whose fields are not ``auto``.

    Raises:
        PlanError: no result has that key, or the plan cannot be estimated.
    """
    facts = catalog or load_catalog()
    settled = settle(plan, facts, machine)
    with recording() as record:
        estimate = estimate_settled(settled, facts)
    title, unit, value = figure(estimate, key)
    number = central(value)
    return Explanation(
        key=key,
        title=title,
        unit=unit,
        value=value,
        terms=tuple(_terms(key, settled, estimate, facts)),
        derivations=_derivations(record, key, None if number is None else float(np.mean(number))),
        calibration=estimate.basis.calibration,
        assumed=estimate.basis.assumed,
        lever=None if number is None else _lever(settled, key, float(np.mean(number)), facts, machine),
    )


def _derivations(record: Iterable[Derivation], key: str, value: float | None) -> tuple[Derivation, ...]:
    """Return the equations of a key, each once; of several evaluations the one that gave the result."""
    chosen: dict[str, Derivation] = {}
    for derivation in record:
        if derivation.part != key:
            continue
        matches = value is not None and np.allclose(float(np.mean(derivation.result)), value, rtol=1e-6)
        if matches or derivation.name not in chosen:
            chosen[derivation.name] = derivation
    return tuple(chosen.values())


def _terms(key: str, settled: Settled, estimate: Estimate, catalog: Catalog) -> Iterator[Term]:
    """Split a figure into what it is the sum of."""
    if key in {"memory.per_device_bytes", "memory.reserved_bytes", "memory.utilization_percent"}:
        outside = {"context", "reserve"} if key == "memory.per_device_bytes" else set()
        parts = {name: size for name, size in estimate.memory.parts.items() if name not in outside}
    elif key.startswith(("computation.", "cost.", "energy.")) and not key.startswith("computation.parts."):
        parts = dict(estimate.computation.parts)
    elif key.startswith("computation.parts."):
        work = work_of(settled, catalog)
        if work is not None:
            yield from _operator_terms(work, key.removeprefix("computation.parts."))
        return
    else:
        return
    for name, size in sorted(parts.items(), key=lambda item: -float(np.mean(item[1]))):
        yield Term(name.replace("_", " "), float(np.mean(size)))


def _operator_terms(work: Work, part: str) -> Iterator[Term]:
    """Seconds a step spends in each operator and collective of a part, longest first."""
    terms = []
    micro_batches = float(np.mean(work.schedule.micro_batches))
    for operator in work.operators:
        if operator.part != part:
            continue
        repeats = 1.0 if operator.where == "step" else micro_batches
        seconds = float(np.mean(operator_seconds(operator) * operator.count)) * repeats
        detail = _operator_detail(operator, float(np.mean(operator.count)) * repeats)
        terms.append(Term(f"{operator.name} ({operator.phase})", seconds, detail))
    for collective in work.collectives:
        if collective.part == part:
            repeats = 1.0 if collective.per_step else micro_batches
            seconds = float(np.mean(collective.seconds * collective.count)) * repeats
            times, payload = float(np.mean(collective.count)) * repeats, float(np.mean(collective.bytes))
            behind = float(np.mean(collective.overlap))
            detail = f"{times:,.6g} times {payload / 1e6:,.4g} MB, up to {behind:.0%} of it behind compute"
            terms.append(Term(collective.name, seconds, detail))
    yield from sorted((term for term in terms if term.value > 0), key=lambda term: -term.value)


def _operator_detail(operator: Operator, runs: float) -> str:
    """Say how often an operator runs, at what rate, and which limit it meets."""
    flops, rate = float(np.mean(operator.flops)), float(np.mean(operator.rate))
    traffic, bandwidth = float(np.mean(operator.bytes)), float(np.mean(operator.bandwidth))
    memory = f"{traffic / 1e6:,.4g} MB at {bandwidth / 1e9:,.4g} GB/s"
    if not flops:
        return f"{runs:,.6g} runs of {memory}"
    bound = "arithmetic" if flops / rate >= traffic / bandwidth else "memory"
    arithmetic = f"{flops / 1e9:,.4g} GFLOP at {rate / 1e12:,.4g} TFLOP/s"
    return f"{runs:,.6g} runs of {arithmetic}, {memory}: bound by {bound}"


def _lever(settled: Settled, key: str, value: float, catalog: Catalog, machine: Machine | None) -> Lever | None:
    """Estimate again with each knob one step away, and return the one that improves the figure most."""
    strongest: Lever | None = None
    better = 1.0 if key in MORE_IS_BETTER else -1.0
    for path, label, before, after in _neighbours(settled):
        section, _, name = path.partition(".")
        part = getattr(settled.plan, section).model_copy(update={name: after})
        # Sizes that follow from others are settled again.
        update: dict[str, object] = {section: part}
        if section in {"parallelism", "hardware"}:
            free = {"dp": None, "shard": None, "etp": None}
            base = part if section == "parallelism" else settled.plan.parallelism
            update["parallelism"] = base.model_copy(update=free)
        try:
            changed = settle(settled.plan.model_copy(update=update), catalog, machine)
            moved = central(figure(estimate_settled(changed, catalog), key)[2])
        except CapacityError:
            continue
        if moved is None or value == 0:
            continue
        change = float(np.mean(moved)) / value - 1.0
        if change * better > (strongest.change * better if strongest else 1e-6):
            strongest = Lever(path, label, str(before), str(after), change)
    return strongest


def _neighbours(settled: Settled) -> Iterator[tuple[str, str, object, object]]:
    """Yield path, label, value and a neighbouring value for every knob that can be stepped."""
    for field in plan_fields(settled.plan, settled.family.kind):
        knob, value = field.knob, field.value
        if field.path.startswith(("pricing.", "model.")) or field.path.count(".") != 1:
            continue
        if field.path in NOT_LEVERS:
            continue
        if knob.kind == "power-of-two" and isinstance(value, int) and not isinstance(value, bool):
            for neighbour in (value // 2, value * 2):
                if neighbour >= max(1.0, knob.minimum or 1.0) and neighbour <= (knob.maximum or np.inf):
                    yield field.path, knob.label, value, neighbour
        elif knob.kind == "choice" and value is not None:
            for choice in knob.choices:
                if choice != str(value):
                    yield field.path, knob.label, value, int(choice) if choice.isdigit() else choice


def interval_text(value: Figure) -> str:
    """Return the range of a figure in percent of its value, empty where it has none."""
    if not isinstance(value, Interval):
        return ""
    center = float(np.mean(value.value)) or 1.0
    low, high = float(np.mean(value.low)) / center - 1.0, float(np.mean(value.high)) / center - 1.0
    return f"{low:+.0%} to {high:+.0%}"
