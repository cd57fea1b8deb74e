"""Questions asked backwards: everything is fixed but one field, and that takes the value which keeps the limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.keys import ON_HOST, Key
from capacity_tui.engine.models import presumed_family
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import OWN_PARAMETERS, Plan, PlanField, field_path, field_value, plan_fields
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import LARGEST_COUNT, Knob
from capacity_tui.engine.solve.candidate import Candidate, Evaluator, is_better
from capacity_tui.engine.solve.modes.modes import with_placeholders
from capacity_tui.engine.solve.need.bounds import NAME, PARAMETERS
from capacity_tui.engine.solve.need.names import (
    DEVICES,
    affordable_choices,
    besides,
    best_name,
    budget_of,
    choices,
    is_budget,
    names_of,
    usual_goal,
    with_paid_tokens,
)
from capacity_tui.engine.solve.need.numbers import Edge, Scale, ValueSearch, scale_of, whole_nodes
from capacity_tui.engine.solve.search.question import Goal, Limit, Question, hardware_ids, model_names
from capacity_tui.engine.solve.search.search import goal_of

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine


@dataclass(frozen=True, slots=True)
class Needed(ShownInNotebooks):
    """Which value of a field keeps the limits."""

    solve: str  # what was asked for: a plan field, or the size of the model
    limits: tuple[Limit, ...]  # what was to be kept
    goal: Goal | None  # what decides between values that keep the limits; None where the outermost one was wanted
    best: Candidate | None  # the answer; None where no value keeps the limits
    neighbour: Candidate | None = None  # the next value, which keeps them no longer; None where none was reached
    nearest: Candidate | None = None  # what misses the limits by least, where there is no answer
    # what ends the range of the value where no limit does: the field itself, or what the model reads
    ended_by: str = ""
    is_monotonic: bool = True  # whether no value fails between two that hold
    evaluated: int = 0
    seconds: float = 0.0
    complete: bool = True  # whether everything was looked at: else somebody stopped it

    @property
    def value(self) -> object:
        """The value asked for; None where no value keeps the limits."""
        return None if self.best is None else self.value_of(self.best)

    def value_of(self, candidate: Candidate) -> object:
        """Return the value that a candidate has of what was asked for; None for the size of a model that cannot be."""
        if self.solve in candidate.change:
            return candidate.change[self.solve]
        number = candidate.number(self.solve)
        return None if number is None else int(number)

    @property
    def binding(self) -> str | None:
        """Result key of the limit that the next value breaks, or the nearest one; None where no limit ends it."""
        beyond = self.neighbour if self.best is not None else self.nearest
        if beyond is None:
            return self.ended_by or None
        return next((constraint.key for constraint in beyond.violations), None)


NUMBERS = ("integer", "power-of-two", "number")
READS = "model.max_context"  # What ends a context where memory does not
LAYERS = f"{Key.MODEL_SPEC}.layers"  # What ends the layers on a device where all of them have room
_PROMPT, _OUTPUT, _SEQUENCE = Key.INFERENCE_PROMPT_TOKENS, Key.INFERENCE_OUTPUT_TOKENS, Key.TRAINING_SEQ_LEN
_NO_PACE = ("cost.", "energy.", "memory.")
_SPLITS = (Key.PARALLELISM_TP, Key.PARALLELISM_PP, Key.PARALLELISM_CP)


class StoppedError(Exception):
    """Somebody stopped the search for an answer."""


@dataclass(frozen=True, slots=True)
class Values:
    """Tries values of a number, each with what else may change."""

    path: str
    others: tuple[Mapping[str, object], ...]  # what else may change, as combinations
    trials: Evaluator
    goal: Goal | None  # what decides between combinations
    stopped: Callable[[], bool]
    # what suited the value before, which comes first for the next one
    last: list[Mapping[str, object]] = field(default_factory=list)

    def __call__(self, value: float) -> Candidate:
        """Return the best of the combinations for a value: without a goal the first that keeps the limits."""
        best: Candidate | None = None
        for other in (*self.last[-1:], *self.others):
            if self.stopped():
                raise StoppedError
            candidate = self.trials.evaluate({self.path: value, **other})
            if best is None or self._suits_better(candidate, best):
                best = candidate
            if candidate.holds and self.goal is None:
                break
        assert best is not None  # noqa: S101 - changing nothing else is a combination too
        if best.holds:
            self.last.append({path: entry for path, entry in best.change.items() if path != self.path})
        return best

    def expect(self, count: int) -> None:
        """Say how many more values are tried at the most, each with every combination of what else may change."""
        self.trials.left = count * len(self.others)

    def _suits_better(self, one: Candidate, other: Candidate) -> bool:
        if one.holds and other.holds and self.goal is not None:
            return is_better(one, other, self.goal)
        return (one.holds, -one.violation) > (other.holds, -other.violation)


def outermost_value(path: str, question: Question, trials: Evaluator, stopped: Callable[[], bool]) -> Needed:
    """Return the value of a number that keeps the limits: the outermost one, or the one that suits the goal best."""
    plan, goal, catalog = question.plan, question.goal, trials.catalog
    entry, is_whole = _numeric_field(path, plan, catalog)
    most, ends = _most(path, trials) or (None, path)
    knob = entry.knob if most is None else replace(entry.knob, maximum=float(most))
    scale = scale_of(knob, is_whole, _grain(path, plan))
    if path == DEVICES and (node := _node(trials)) is not None:
        scale = whole_nodes(node, _grain(path, plan), int(knob.maximum or LARGEST_COUNT))
    values = Values(path, besides(path, question), trials, goal, stopped)
    line = ValueSearch(scale, values, values.expect)
    current = entry.value if isinstance(entry.value, int | float) and not isinstance(entry.value, bool) else None
    needed = Needed(path, question.limits, goal, None)
    try:
        line.spread(scale.index(_usual(scale) if current is None else float(current)))
        if not line.holding:
            return replace(needed, nearest=line.at(line.nearest()))
        index, fails = _outermost(path, line) if goal is None else _best(line, goal)
    except StoppedError:
        holding = line.holding
        so_far = holding[0 if _fewest(path) else -1 :][:1]
        return replace(needed, best=line.at(so_far[0]) if so_far else None, complete=False)
    ended = "" if fails is not None or index not in (scale.low, scale.high) else path
    if ended and index == scale.high == most:
        ended = ends
    beyond = None if fails is None else line.at(fails)
    return replace(needed, best=line.at(index), neighbour=beyond, is_monotonic=line.is_monotonic, ended_by=ended)


def _outermost(path: str, line: ValueSearch) -> tuple[int, int | None]:
    """Return the outermost place that holds in the direction in which the limits end it, and the next that fails.

    Where they end it in both directions, or in none, the fewest devices are wanted, and the most of all else; and the
    fewest devices too where more of them would ease a limit, such as one of time, which the fewest keep already.
    """
    start = line.holding[0]
    ends = {direction: line.edge(start, direction) for direction in (1, -1)}
    # Where there is no such plan, it is not a limit that ends them.
    limited = {way: edge.fails is not None and bool(line.at(edge.fails).violations) for way, edge in ends.items()}
    wanted = -1 if _fewest(path) else 1
    if limited[1] != limited[-1]:
        wanted = 1 if limited[1] else -1
    if wanted == 1 and _fewest(path) and _eased(line.at(ends[-1].holds), line.at(ends[1].holds)):
        wanted = -1
    return ends[wanted].holds, ends[wanted].fails


def _eased(low: Candidate, high: Candidate) -> bool:
    """Whether any limit on the pace of the work is further from being missed at the high end than at the low one."""
    pairs = zip(low.constraints, high.constraints, strict=True)
    return any(more.violation < less.violation for less, more in pairs if not less.key.startswith(_NO_PACE))


def _fewest(path: str) -> bool:
    """Whether the least of a field is wanted where limits leave it open: devices are paid for."""
    return path.startswith("hardware.")


def _best(line: ValueSearch, goal: Goal) -> tuple[int, int | None]:
    """Return the place that holds and suits a goal best, and the next one that fails where it stands at an edge."""
    start = line.holding[0]
    edges: tuple[Edge, ...] = (line.edge(start, 1), line.edge(start, -1))
    index = line.best(goal)
    return index, next((edge.fails for edge in edges if edge.holds == index), None)


def _numeric_field(path: str, plan: Plan, catalog: Catalog) -> tuple[PlanField, bool]:
    """Return a field that is a number, and whether it is a whole one; raises PlanError for any other."""
    kind = presumed_family(plan.model.name, catalog).kind
    entry = next((entry for entry in plan_fields(plan, kind, catalog=catalog) if entry.path == path), None)
    if entry is None and path.startswith(OWN_PARAMETERS):
        value = plan.model.spec.get(path.removeprefix(OWN_PARAMETERS))
        return PlanField(path, Knob("", "integer", "model", minimum=1, maximum=LARGEST_COUNT), value), True
    place = Place(field=path)
    if entry is None:
        raise PlanError("does not apply to this plan", hint="solve for another field", place=place)
    if entry.knob.kind not in NUMBERS or entry.knob.role == "output":
        hint = "solve for a number or a name, such as hardware.devices, training.seq_len or model.name"
        raise PlanError("is not a number to solve for", hint=hint, place=place)
    if entry.idle:
        raise PlanError("changes nothing in this plan", entry.idle, "solve for another field", place)
    if path.startswith(OWN_PARAMETERS):
        return entry, entry.knob.kind != "number"
    # The smallest value that any number takes.
    least = max(entry.knob.minimum or 0.0, 1.0)
    most = min(entry.knob.maximum or least, least)
    return entry, entry.knob.kind != "number" and isinstance(field_value(path, f"{most:g}", catalog), int)


def _usual(scale: Scale) -> float:
    """Return where to begin where the plan gives no number: between both ends."""
    low, high = float(scale.value(scale.low)), float(scale.value(scale.high))
    return float(np.sqrt(low * high)) if low > 0 else (low + high) / 2


def _grain(path: str, plan: Plan) -> int:
    """Return what a number must be a multiple of, as the sizes say that the plan gives."""
    sizes = {name: plan.value(name) for name in _SPLITS}
    given = {name: size for name, size in sizes.items() if isinstance(size, int)}
    if path == DEVICES:
        return int(np.prod([*given.values()], dtype=np.int64))
    return given.get(_SPLITS[-1], 1) if path == _SEQUENCE else 1


def _node(trials: Evaluator) -> int | None:
    """Return the devices of a full node of the hardware, since whole nodes are rented; None where unknown."""
    plan = trials.plan
    many = plan.hardware.model_copy(update={"devices": LARGEST_COUNT})
    try:
        cluster = resolve_cluster(many, plan.pricing, trials.catalog, trials.machine)
    except CapacityError:
        return None
    return int(np.max(np.asarray(cluster.per_node)))


def _most(path: str, trials: Evaluator) -> tuple[int, str] | None:
    """Return the longest prompt that a served model reads, or its layers, and what ends there; None for other fields.

    None also where that is not known.
    """
    plan, row = trials.plan, trials.catalog.architectures.known(trials.plan.model.name)
    if row is None or not plan.is_inference:
        return None
    if path in ON_HOST:
        shape = resolve_plan(with_placeholders(plan, trials.catalog), trials.catalog, trials.machine).shape
        return None if shape is None else (int(shape.layers), LAYERS)
    other = plan.value(_OUTPUT if path == _PROMPT else _PROMPT)
    if path not in (_PROMPT, _OUTPUT) or row.max_context is None or not isinstance(other, int):
        return None
    return max(row.max_context - (other if row.kind == "decoder" else 0), 1), READS


def solved_path(name: str) -> str:
    """Return the plan field that a question solves for, or the model's size; raises PlanError where there is none."""
    return PARAMETERS if name in (PARAMETERS, PARAMETERS.rpartition(".")[2]) else field_path(name)


def need(
    question: Question,
    solve: str,
    machine: Machine | None = None,
    catalog: Catalog | None = None,
    callback: Callable[[Candidate, int], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Needed:
    """Return the value of one field with which a plan keeps its limits, everything else being as it is.

    A number goes as far as the limits let it, whichever way that is; of names the one that reaches the goal best is
    taken. What the plan leaves open is filled for each value as the balanced mode does. The answer is estimated, and
    so is the next value, which does not keep the limits.

    Args:
        solve: the field that is asked for; ``model.parameters`` is the size of the model.
        callback: called with every candidate as it is tried, and how many more are tried at the most.

    Raises:
        PlanError: there is no such field, it is no number and names nothing, nothing is known of what is limited, or
            what is asked for takes memory, and that of its hardware is not known.
        CapacityError: the plan makes no sense whatever the value.
    """
    facts = catalog or load_catalog()
    path, began = solved_path(solve), perf_counter()
    question = replace(
        question,
        hardware=hardware_ids(question.hardware, facts),
        models=model_names(question.models, question.plan, facts),
    )
    field = NAME if path == PARAMETERS else path
    if any(field in others for others in besides(path, question)):
        hint = "remove it from what else may change"
        raise PlanError("is solved for", hint=hint, place=Place(field=field))
    trials = Evaluator(question.plan, question.limits, facts, machine, callback)
    if question.goal is not None:
        question = replace(question, goal=goal_of(question))
    if names_of(path, question.plan, facts):
        needed = _named(path, question, trials, stopped)
    else:
        needed = outermost_value(path, question, trials, stopped)
    if needed.best is None:
        if needed.complete:
            _refuse_unknown(trials)
        nearest = needed.nearest or min(trials.all, key=lambda candidate: candidate.violation, default=None)
        needed = replace(needed, neighbour=None, nearest=nearest)
    elif needed.best.estimate.fits is None and (field == NAME or _takes_memory(trials)):
        hint = "give it, as 16GB ram of a processor, or 24GB of a device"
        title = f"which {'model' if field == NAME else field} fits is not known without the memory"
        raise PlanError(title, str(question.plan.hardware.name), hint)
    return replace(needed, evaluated=len(trials.all), seconds=perf_counter() - began)


def _named(path: str, question: Question, trials: Evaluator, stopped: Callable[[], bool]) -> Needed:
    """Return the name that keeps the limits and reaches the goal best."""
    plan, limits, facts = question.plan, question.limits, trials.catalog
    goal = question.goal or usual_goal(path, plan)
    names = tuple(choices(path, question, facts, trials.machine))
    if not is_budget(path, plan, goal, limits):
        named = best_name(names, trials, goal, stopped)
        return Needed(path, limits, goal, named.best, named.neighbour, complete=named.complete)
    named = best_name(tuple(affordable_choices(names, limits, facts)), trials, goal, stopped, with_paid_tokens)
    ended = "" if named.best is None else budget_of(named.best)
    return Needed(path, limits, goal, named.best, ended_by=ended, complete=named.complete)


def _takes_memory(trials: Evaluator) -> bool:
    """Whether what is asked for takes memory: some of the plans that were tried need more of it than others."""
    estimates = (candidate.estimate for candidate in trials.all if candidate.filled is not None)
    return len({round(largest(one.memory.reserved_bytes.value)) for one in estimates}) > 1


def _refuse_unknown(trials: Evaluator) -> None:
    """Raise PlanError for a question whose every candidate is a fault, or lacks the same figure."""
    filled = [candidate for candidate in trials.all if candidate.filled is not None]
    if not filled:
        first = next(iter(trials.all), None)
        raise PlanError("no value makes a plan", "" if first is None else first.fault)
    for limit in trials.limits:
        lacking = [
            reached
            for one in filled
            for reached in one.constraints
            if reached.key == limit.figure and reached.bound_value is None
        ]
        if len(lacking) == len(filled):
            why = lacking[0].constraint.why
            raise PlanError(f"{limit.figure} is not known", why, "add to the plan, or limit another figure")
