"""Every field of a plan one step away: how far it moves a figure, and which step improves it most."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import LESS, METRICS, Estimate, ResolvedPlan, figure
from capacity_tui.engine.estimate.serving import why_not_read
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import PlanField, plan_fields
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import next_number
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.changes import estimate_changes
from capacity_tui.engine.verdict import Verdict

Kind = Literal["knob", "unknown"]
_LEAST = 1e-6  # A figure that moves by less than this share stands still


@dataclass(frozen=True, slots=True)
class Swing:
    """One thing that moves a figure, alone."""

    kind: Kind  # ``knob`` for a field of the plan, ``unknown`` for what nobody decides
    key: str  # path of the field; of an unknown the name it goes by
    label: str
    now: object
    start: object  # its value with which the figure is ``low``
    end: object  # its value with which the figure is ``high``
    low: float  # the smallest value of the figure
    high: float
    unit: str = ""  # unit of its values; ``x`` for a ratio of measured to estimated

    @property
    def swing(self) -> float:
        """The difference that it makes."""
        return self.high - self.low


def swing_of(
    kind: Kind, key: str, label: str, now: object, trials: Iterable[tuple[object, float | None]], unit: str = ""
) -> Swing | None:
    """Return how far something moves a figure; None where the figure stands still."""
    values = [(number, value) for value, number in trials if number is not None]
    if not values:
        return None
    low, start = min(values, key=lambda pair: pair[0])
    high, end = max(values, key=lambda pair: pair[0])
    if high - low <= _LEAST * max(abs(low), abs(high)):
        return None
    return Swing(kind, key, label, now, start, end, low, high, unit)


def one_step_away(
    resolved: ResolvedPlan, catalog: Catalog, wanted: Callable[[PlanField], bool]
) -> Iterator[tuple[PlanField, object]]:
    """Yield the wanted fields that have a value, with each value one step away: down and up, or every other choice."""
    for field in plan_fields(resolved.plan, resolved.family.kind, catalog=catalog):
        if field.value is not None and wanted(field):
            for value in _steps(field):
                if _has_kernels(resolved, field.path, value, catalog):
                    yield field, value


@dataclass(frozen=True, slots=True)
class Step:
    """A field one step away, the rest of the plan as it is."""

    field: PlanField  # the field, with its value now
    value: object
    change: Mapping[str, object]  # the same with what keeps the work of a step the same
    estimate: Estimate | None  # what the plan comes to then; None where it cannot be


def estimated_steps(case: EstimatedPlan, wanted: Callable[[PlanField], bool]) -> list[Step]:
    """Return the wanted fields one step away, all of them estimated together."""
    steps = tuple(one_step_away(case.resolved, case.catalog, wanted))
    changes = [case.same_batch({field.path: value}) for field, value in steps]
    looks = estimate_changes(case.pinned.wanted, changes, case.machine, case.catalog)
    return [
        Step(*step, change, None if isinstance(look, CapacityError) else look)
        for step, change, look in zip(steps, changes, looks, strict=True)
    ]


def _has_kernels(resolved: ResolvedPlan, path: str, value: object, catalog: Catalog) -> bool:
    """Whether the device and the engine run a value as it is named."""
    device = resolved.cluster.device
    if path == Key.TRAINING_PRECISION:
        # A type the device has no units for runs as another one, which is tried itself.
        return value in device.peaks
    if path == Key.INFERENCE_WEIGHTS:
        weights = catalog.quantizations.find(str(value))
        return not why_not_read(weights, resolved.plan.inference.engine, device, catalog)
    return True


def _steps(field: PlanField) -> Iterator[object]:
    knob, value = field.knob, field.value
    if isinstance(value, bool):
        yield not value
    elif knob.kind == "choice":
        for choice in knob.choices:
            if choice != str(value):
                yield int(choice) if choice.isdigit() else choice
    elif isinstance(value, int | float):
        for direction in (-1, 1):
            after = next_number(knob, value, direction)
            if after is not None and after != value:
                yield type(value)(after)


OTHER_RUNS = frozenset({Key.TASK})  # A step of these is another question: what kind of run it is
NO_KNOBS = frozenset({"derived", "output"})  # Sizes that follow from others, and what changes reports alone


def knob_swings(case: EstimatedPlan, of: str, value: float) -> Iterator[Swing]:
    """Yield the fields whose next values move a figure, the rest of the plan staying as it is."""
    moved: dict[str, tuple[PlanField, list[tuple[object, float | None]]]] = {}
    for step in estimated_steps(case, _is_knob):
        if step.estimate is not None:
            _, values = moved.setdefault(step.field.path, (step.field, [(step.field.value, value)]))
            values.append((step.value, figure(step.estimate, of).number))
    for path, (field, values) in moved.items():
        swing = swing_of("knob", path, field.knob.label, field.value, values, field.knob.unit)
        if swing is not None:
            yield swing


def _is_knob(field: PlanField) -> bool:
    return not field.idle and field.knob.role not in NO_KNOBS and field.path not in OTHER_RUNS


# A utilization is measured against what the precision could reach: another precision moves the measure itself.
MEASURES = frozenset({Figure.MFU, Figure.BOTTLENECK_ARITHMETIC_INTENSITY, Figure.BOTTLENECK_RIDGE_POINT})

LEVERS = ("setting", "memory")  # Fields that say how a plan is run; those for memory are levers where it is short
LEAST_CHANGE = 0.005  # A smaller change is no lever
MOST_PLANNED = 3  # So many of those that promise most are planned


@dataclass(frozen=True, slots=True)
class Lever:
    """The knob that would improve a number most with one step."""

    field: str
    label: str
    before: str
    after: str
    change: float  # relative change of the number, -0.5 for half
    # what else has to be set so that the work stays the same
    also: Mapping[str, object] = dataclasses.field(default_factory=dict)


def strongest_lever(case: EstimatedPlan, key: str) -> Lever | None:
    """Return the knob that improves a figure most with one step, as planning that step says.

    All steps are ranked with the rest of the plan as it is; those that promise most are planned.

    Returns:
        None for a figure that no knob improves, and for facts: a model's size, what a device offers, a price.
    """
    metric = METRICS.get(key)
    better = LESS if metric is None else metric.better
    value = figure(case.estimate, key).number
    if not value or not better:
        return None
    short = case.estimate.verdict is Verdict.DOES_NOT_FIT
    promised = [
        (_gain(figure(step.estimate, key).number, value, better), step)
        for step in estimated_steps(case, lambda known: is_lever(known) and _concerns(known, key, short=short))
        if step.estimate is not None
    ]
    best, most = None, LEAST_CHANGE
    for promise, step in sorted(promised, key=lambda pair: -pair[0])[:MOST_PLANNED]:
        number = case.evaluate(step.change).number(key) if promise > LEAST_CHANGE else None
        gain = _gain(number, value, better)
        if number is not None and gain > most:
            known = step.field
            also = {path: entry for path, entry in step.change.items() if path != known.path}
            moved = number / value - 1.0
            best, most = Lever(known.path, known.knob.label, str(known.value), str(step.value), moved, also), gain
    return best


def _gain(number: float | None, value: float, better: int) -> float:
    return 0.0 if number is None else (number / value - 1.0) * better


def _concerns(known: PlanField, key: str, *, short: bool) -> bool:
    """Whether a knob may be the lever of a figure, where memory is short or not."""
    if known.knob.role == "memory":
        return short and key.startswith("memory.")
    return known.path != Key.TRAINING_PRECISION or key not in MEASURES


def is_lever(known: PlanField) -> bool:
    """Whether a field is a choice of how to run: not what to run, nor its price."""
    return known.knob.role in LEVERS and known.knob.kind in ("power-of-two", "choice")
