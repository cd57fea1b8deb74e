"""What a search is asked: axes, limits, goals, and the rows of the catalogue that names stand for."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from capacity_tui.engine.catalog import Catalog, key_of, load_catalog
from capacity_tui.engine.errors import Place, PlanError, UnitError
from capacity_tui.engine.estimate import METRICS, MORE, Constraint, Estimate, figure_keys, limit, usual_words
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.models import family_of
from capacity_tui.engine.plan import DETECTED, Plan, all_fields, counted_name, field_path, field_value, is_model_file
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Knob
from capacity_tui.engine.solve.space.axes import Axis, choices_of
from capacity_tui.engine.units import format_number, format_quantity, parse_quantity

Better = Literal["less", "more"]
TRAINED, SERVED = "train", "infer"
_LIMIT = re.compile(r"\s*(?P<figure>[^<>=]+?)\s*(?P<sign><=?|>=?)\s*(?P<value>[^<>=]+?)\s*")
_EXAMPLE = "write FIGURE<=VALUE or FIGURE>=VALUE, such as 'time<=24h' or 'memory<=95%'"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure may be: it holds where the far end of the figure's range keeps it."""

    figure: str
    most: float | None = None  # the most it may be, in the figure's unit; None for no bound
    least: float | None = None  # the least it may be; None for no bound

    @property
    def words(self) -> str:
        """The limit as it is typed, with the figure's result key."""
        sign, value = ("<=", self.most) if self.most is not None else (">=", self.least)
        return f"{self.figure} {sign} {format_quantity(value, unit_of(self.figure))}"

    def constraint(self, estimate: Estimate) -> Constraint:
        """Return the limit beside what an estimate reaches of it."""
        return limit(estimate, self.figure, most=self.most, least=self.least, why="the goal")


@dataclass(frozen=True, slots=True)
class Goal:
    """What the best configuration has least or most of."""

    figure: str
    better: Better = "less"  # whether less of it is better, or more

    @property
    def sign(self) -> float:
        """What makes less of the figure better: 1 where it is, -1 where more is."""
        return 1.0 if self.better == "less" else -1.0


TIME = Goal(Figure.ESTIMATED_TRAIN_TIME_SECONDS)  # What a search aims at where nobody says
MOST_TOP = 10


@dataclass(frozen=True, slots=True)
class Question:
    """What a search is asked."""

    plan: Plan  # the plan that everything else varies
    vary: tuple[Axis, ...] = ()  # fields with the values to try; none for what the plan leaves open and the usual ones
    # ids of devices or instances to try, the name of a vendor or provider for all of its own, or ``any``; none for the
    # plan's own
    hardware: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()  # numbers of devices to try; none for the plan's own
    models: tuple[str, ...] = ()  # models to try, or ``any``; none for the plan's own
    limits: tuple[Limit, ...] = ()  # what must hold of every answer
    # what the best has least or most of; None for time, where models vary the largest model, and of a load that arrives
    # the least money, or on the plan's own hardware the least time to the first token
    goal: Goal | None = None
    pareto: tuple[str, ...] = ()  # result keys of the figures whose front is wanted; none for no front
    top: int = MOST_TOP  # how many of the best
    # how many of them at most with the same model, hardware and number of devices; None for any number
    per_kind: int | None = None


def unit_of(figure: str) -> str:
    """Return the unit of a figure by its result key, as quantities are written."""
    if figure in METRICS:
        return usual_words(METRICS[figure].unit).replace("tokens", "tok")
    return "B" if figure.startswith("memory") else "s"


def better_of(figure: str) -> Better:
    """Return whether less of a figure is better, or more."""
    metric = METRICS.get(figure)
    return "more" if metric is not None and (metric.better or metric.goal) == MORE else "less"


def parse_limit(text: str, task: str = TRAINED) -> Limit:
    """Return the limit that a text such as ``time<=24h`` or ``memory.reserved_bytes<=70GiB`` says.

    Raises:
        PlanError: it is no limit, or no figure is called that.
        UnitError: the figure does not have such values.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise PlanError("not a limit", repr(text)[:80], _EXAMPLE)
    keys = figure_keys(match["figure"], task)
    for key in keys:
        try:
            value = parse_quantity(match["value"], unit_of(key), place=Place(field=match["figure"]))
        except UnitError:
            if key == keys[-1]:
                raise
            continue
        return Limit(key, most=value) if match["sign"].startswith("<") else Limit(key, least=value)
    raise AssertionError(keys)  # a word has one figure at least


def parse_goal(text: str, task: str = TRAINED) -> Goal:
    """Return the goal that a word such as ``time`` or a result key says.

    Raises:
        PlanError: no figure is called that, or neither more nor less of it is better.
    """
    key = figure_keys(text.strip(), task)[0]
    if key in METRICS and not METRICS[key].better and not METRICS[key].goal:
        raise PlanError("neither more nor less of this is better", key, "name another figure as the goal")
    return Goal(key, better_of(key))


def parse_figures(text: str, task: str = TRAINED) -> tuple[str, ...]:
    """Return the result keys of a list such as ``time,usd``.

    Raises:
        PlanError: no figure is called that, or the list is empty.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise PlanError("no figures", hint="name two, such as time,usd")
    return tuple(dict.fromkeys(parse_goal(name, task).figure for name in names))


MOST_VALUES = 100_000  # Values of one axis: more are a slip of the pen
ANY = "any"
_BETWEEN = ".."
_AXIS_EXAMPLE = "write KEY=V1,V2 or KEY=LO..HI or KEY=LO..HI:STEP, such as training.micro_batch=1..8"


def parse_axis(text: str, catalog: Catalog | None = None) -> Axis:
    """Return the axis that a text says: ``KEY=V1,V2``, ``KEY=LO..HI`` or ``KEY=LO..HI:STEP``, ``KEY=any`` for a choice.

    A range steps as the field does: by doubling, through whole numbers, or through its choices. ``KEY`` is a plan key,
    or the end of one where no other ends so.

    Raises:
        PlanError: it is no axis, there is no such field, or it does not take a value.
    """
    facts = catalog or load_catalog()
    name, equals, written = text.partition("=")
    if not equals or not name.strip() or not written.strip():
        raise PlanError("not an axis", repr(text)[:80], _AXIS_EXAMPLE)
    path = field_path(name.strip())
    values = tuple(dict.fromkeys(_values(path, written.strip(), facts)))
    if not values:
        raise PlanError("no values", repr(written)[:80], _AXIS_EXAMPLE, Place(field=path))
    if AUTO in values:
        raise PlanError("auto is not a value to try", hint="remove the field from what varies", place=Place(field=path))
    return Axis(path, values)


def _values(path: str, written: str, catalog: Catalog) -> Iterator[object]:
    """Yield the values of an axis, each as a plan would hold it."""
    choices = choices_of(path, catalog)
    for part in written.split(","):
        one = part.strip()
        if one == ANY and choices:
            yield from choices
        elif _BETWEEN in one:
            yield from _between(path, one, catalog)
        elif one:
            yield field_value(path, one, catalog)


def _between(path: str, written: str, catalog: Catalog) -> Iterator[object]:
    """Yield the values of a range, both ends among them."""
    ends, colon, step_text = written.partition(":")
    low, high = (field_value(path, end.strip(), catalog) for end in ends.split(_BETWEEN, 1))
    known = all_fields().get(path)
    choices = choices_of(path, catalog)
    if low in choices and high in choices and not colon:
        first, last = choices.index(low), choices.index(high)
        if first > last:
            raise PlanError("the range ends before it begins", written, _AXIS_EXAMPLE, Place(field=path))
        yield from choices[first : last + 1]
        return
    if not isinstance(low, int | float) or not isinstance(high, int | float) or isinstance(low, bool):
        raise PlanError("words have no range", repr(written)[:80], "name the values, as KEY=V1,V2", Place(field=path))
    if low > high:
        raise PlanError("the range ends before it begins", written, _AXIS_EXAMPLE, Place(field=path))
    whole = isinstance(low, int) and isinstance(high, int)
    knob = None if known is None else known.knob
    if not colon and knob is not None and knob.kind == "power-of-two":
        yield from _doubling(low, high)
        return
    yield from _stepping(path, written, (low, high), step_text if colon else None, knob, whole)


def _doubling(low: float, high: float) -> Iterator[object]:
    """Yield the lower end, its double and so on, and the upper end."""
    value = low
    while value < high:
        yield value
        value = 2 * value if value > 0 else 1
    yield high


def _stepping(
    path: str, written: str, ends: tuple[float, float], step_text: str | None, knob: Knob | None, whole: bool
) -> Iterator[object]:
    """Yield the values from one end to the other by a step: as typed, else as the field steps."""
    low, high = ends
    step = knob.step if knob is not None else 1.0
    if step_text is not None:
        try:
            step = float(step_text)
        except ValueError:
            raise PlanError("not a step", repr(step_text)[:40], _AXIS_EXAMPLE, Place(field=path)) from None
    if not (math.isfinite(step) and step > 0):
        raise PlanError("not a step", repr(step_text)[:40], "give a number above 0", Place(field=path))
    if (high - low) / step >= MOST_VALUES:
        allowed = f"{format_number(MOST_VALUES)} at most: take a larger step"
        raise PlanError("too many values", written, allowed, Place(field=path))
    for number in range(math.floor((high - low) / step + 1e-9) + 1):
        value = low + number * step
        yield round(value) if whole and float(value).is_integer() else float(f"{value:.12g}")


INSTANCES = "instances"  # What stands for every instance with accelerators that has a price


def hardware_ids(names: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
    """Return the hardware that names stand for: ids, a maker or cloud for all of its own, ``instances``, or ``any``.

    What is only announced has to be named. Of a maker that rents its chips these are its machines, as of a cloud.

    Raises:
        CatalogError: nothing is called that; the hint tells the nearest.
        PlanError: it is a provider whose machines have no price on demand.
    """
    named = tuple(names)
    ids = tuple(dict.fromkeys(row_id for name in named for row_id in _hardware(name, catalog)))
    if named and not ids:
        raise PlanError("no machine of it has a price on demand", ", ".join(named), "name one of its machines")
    return ids


def _hardware(name: str, catalog: Catalog) -> Iterator[str]:
    from capacity_tui.engine.plan.line import offered_accelerators  # noqa: PLC0415 - no plan waits for what reads lines

    key = key_of(name)
    offered = [row for row in offered_accelerators(catalog) if not row.is_announced]
    if key == ANY:
        # What can be rented first: a goal of money has its first answers at once.
        yield from (row.id for row in sorted(offered, key=lambda row: not catalog.instances_with(row.id)))
        return
    made = [row.id for row in offered if key_of(row.vendor) == key]
    rented = [
        row.id
        for row in catalog.instances.values()
        if key in (key_of(row.provider), INSTANCES) and row.accelerator and row.on_demand_usd_per_hour is not None
    ]
    if made or rented:
        yield from rented or made  # chips of a provider are had with its machines
    elif any(key_of(row.provider) == key for row in catalog.instances.values()):
        return  # one that has spare machines alone, without a price on demand
    elif name == DETECTED or counted_name(name) or name in catalog.clusters:
        yield name
    else:
        yield catalog.find_hardware(name).id


def model_names(names: Iterable[str], plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """Return the models that names stand for; ``any`` is every one of the catalogue of the same kind, largest first.

    Args:
        plan: whose model says the kind.

    Raises:
        PlanError: no model is called that; the hint tells the nearest.
    """
    models: list[str] = []
    for name in names:
        if key_of(name) != ANY:
            if not is_model_file(name, catalog):
                family_of(name, catalog)
            models.append(name)
            continue
        own = catalog.architectures.known(plan.model.name)
        kind = "decoder" if own is None else own.kind
        rows = [row for row in catalog.architectures.values() if row.kind == kind and row.params_total]
        models += (row.id for row in sorted(rows, key=lambda row: -(row.params_total or 0)))
    return tuple(dict.fromkeys(models))
