"""Three plans for one wish: conservative, balanced and extreme fill what the plan leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.choose.modes.filled import ModePlan, Reasons, Settled, Values
from capacity_tui.engine.choose.modes.mode_groups import ModeGroup, mode_groups, remarks
from capacity_tui.engine.choose.modes.model_choice import choose_model, smallest_model
from capacity_tui.engine.choose.modes.serving_settings import ServedSpaces, choose_serving
from capacity_tui.engine.choose.modes.shares import memory_budget
from capacity_tui.engine.choose.modes.spec_fields import choose_own_parameters, choose_served_batch
from capacity_tui.engine.choose.modes.training_settings import Search
from capacity_tui.engine.choose.modes.ways_out import explained, with_fallbacks
from capacity_tui.engine.choose.space.evaluations import Evaluations
from capacity_tui.engine.cluster import resolve_cluster
from capacity_tui.engine.estimate import Estimate, Note, ResolvedPlan, estimate_resolved, resolve_plan
from capacity_tui.engine.keys import Key
from capacity_tui.engine.notebook import ShownInNotebooks
from capacity_tui.engine.plan import AUTO, Plan, chosen_unless_given, model_sizes, open_jobs, placeholders, with_values

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

ModeName = Literal["conservative", "balanced", "extreme"]
MODES: tuple[ModeName, ...] = ("conservative", "balanced", "extreme")

_SAME_JOB = "the balanced mode's, so that all three do the same job"


@dataclass(frozen=True, slots=True)
class Comparison(ShownInNotebooks):
    """The three plans side by side."""

    conservative: ModePlan
    balanced: ModePlan
    extreme: ModePlan

    @property
    def columns(self) -> tuple[ModePlan, ...]:
        """The three in their order."""
        return self.conservative, self.balanced, self.extreme

    @property
    def groups(self) -> tuple[ModeGroup, ...]:
        """The three in their order, those with the same plan, or one that another beats, as one."""
        return mode_groups(self.columns)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of the columns as a whole."""
        return tuple(remarks(self.groups))


@dataclass(frozen=True, slots=True)
class Shared:
    """What is evaluated for one mode, and serves the others of the same comparison."""

    trained: Evaluations = field(default_factory=Evaluations)
    served: ServedSpaces = field(default_factory=ServedSpaces)


def open_fields(plan: Plan) -> tuple[str, ...]:
    """Return the plan fields that are still to be chosen: what is ``auto``, and the layout of serving if absent."""
    chosen_model = (Key.MODEL_NAME,) if plan.model.name == AUTO else ()
    unless_given = chosen_unless_given(plan.task or "")
    given = (
        path
        for path in placeholders()
        if plan.value(path) == AUTO or (path in unless_given and plan.value(path) is None)
    )
    return (*chosen_model, *given)


def compare(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Comparison:
    """Return conservative, balanced and extreme plans for the same job: the balanced mode's, where the job is open.

    A plan that leaves the model open gets another job in each mode, since each chooses another model.

    Raises:
        CapacityError: the plan cannot be estimated.
    """
    facts = catalog or load_catalog()
    if plan.model.name == AUTO:
        shared = Shared()
        return Comparison(*(_fill_model(plan, mode, machine, facts, shared) for mode in MODES))
    resolved = resolve_plan(with_placeholders(plan, facts), facts, machine)
    if not open_fields(plan):
        estimate = estimate_resolved(resolved, facts)
        return Comparison(*(_as_given(mode, resolved, estimate, facts) for mode in MODES))
    shared = Shared()
    balanced = _fill(plan, "balanced", machine, facts, resolved, shared)
    return Comparison(
        _alike(plan, "conservative", balanced, machine, facts, shared),
        balanced,
        _alike(plan, "extreme", balanced, machine, facts, shared),
    )


def fill(plan: Plan, mode_name: ModeName, machine: Machine | None = None, catalog: Catalog | None = None) -> ModePlan:
    """Fill every open field as a mode would, and estimate the result; an open job is the balanced mode's."""
    facts = catalog or load_catalog()
    if plan.model.name == AUTO:
        return _fill_model(plan, mode_name, machine, facts, Shared())
    resolved = resolve_plan(with_placeholders(plan, facts), facts, machine)
    if not open_fields(plan):
        return _as_given(mode_name, resolved, estimate_resolved(resolved, facts), facts)
    if mode_name == "balanced" or not _open_wish(plan):
        return _fill(plan, mode_name, machine, facts, resolved)
    return _alike(plan, mode_name, _fill(plan, "balanced", machine, facts, resolved), machine, facts)


def with_placeholders(plan: Plan, catalog: Catalog) -> Plan:
    """Return the plan with a placeholder in every open field; replicas and their batch wait for what they depend on."""
    wanted = open_fields(plan)
    held = placeholders()
    values = {path: held[path] for path in wanted if path in held}
    if plan.model.name == AUTO:
        values[Key.MODEL_NAME] = smallest_model(catalog)
    if not values.keys().isdisjoint(model_sizes()):
        values |= {Key.PARALLELISM_DP: None, Key.TRAINING_GLOBAL_BATCH: None}
    return with_values(plan, values)


def _open_wish(plan: Plan) -> tuple[str, ...]:
    return tuple(path for path in open_jobs() if plan.value(path) == AUTO)


def _as_given(mode_name: ModeName, resolved: ResolvedPlan, estimate: Estimate, facts: Catalog) -> ModePlan:
    return ModePlan.of(_mode_for(mode_name, resolved, facts), resolved, estimate, {}, facts)


def _mode_for(mode_name: ModeName, resolved: ResolvedPlan, facts: Catalog) -> Mode:
    mode = facts.modes[mode_name]
    return mode.served if resolved.plan.task == "infer" else mode


def _alike(
    plan: Plan,
    mode_name: ModeName,
    balanced: ModePlan,
    machine: Machine | None,
    facts: Catalog,
    shared: Shared | None = None,
) -> ModePlan:
    """Fill a plan as a mode would, for the job that the balanced mode chose."""
    wish = {path: balanced.plan.value(path) for path in _open_wish(plan)}
    wished = with_values(plan, wish)
    resolved = resolve_plan(with_placeholders(wished, facts), facts, machine, balanced.resolved)
    filled = _fill(wished, mode_name, machine, facts, resolved, shared)
    job = {path: f"{_SAME_JOB}: {why}" for path, why in balanced.reasons.items() if path in wish}
    return replace(filled, reasons={**job, **filled.reasons})


def _fill(
    plan: Plan,
    mode_name: ModeName,
    machine: Machine | None,
    facts: Catalog,
    resolved: ResolvedPlan,
    shared: Shared | None = None,
) -> ModePlan:
    """Fill the open fields of a plan that names its model; ``resolved`` holds placeholders in them."""
    return _settled(plan, mode_name, machine, facts, resolved, shared or Shared()).estimated(facts)


def _settled(
    plan: Plan, mode_name: ModeName, machine: Machine | None, facts: Catalog, resolved: ResolvedPlan, shared: Shared
) -> Settled:
    """Choose the open fields of a plan that names its model; ``resolved`` holds placeholders in them."""
    mode, wanted, shape = _mode_for(mode_name, resolved, facts), open_fields(plan), resolved.shape
    budget = memory_budget(mode, resolved.cluster)
    base = with_placeholders(plan, facts)
    notes: tuple[Note, ...] = ()
    step_seconds: float | None = None

    def estimated(values: Mapping[str, object]) -> Estimate:
        return estimate_resolved(resolve_plan(with_values(base, values), facts, machine, resolved), facts)

    if resolved.plan.task == "infer":
        replicas = plan.parallelism.dp if isinstance(plan.parallelism.dp, int) else None
        if shape is None:
            values, reasons = choose_served_batch(wanted, mode, budget, estimated)
        else:
            values, reasons = choose_serving(plan, resolved, shape, wanted, mode, facts, shared.served)
        if replicas is not None:
            values[Key.PARALLELISM_DP] = replicas
    elif shape is None:
        values, reasons = choose_own_parameters(resolved, wanted, mode, budget, estimated)
    else:
        search = Search(plan, resolved, mode, facts, machine, shared.trained)
        values, reasons, notes, step_seconds = _training(search, wanted)
    if isinstance(plan.training.global_batch, int):
        values[Key.TRAINING_GLOBAL_BATCH] = plan.training.global_batch
    resolved = resolve_plan(with_values(base, values), facts, machine, resolved)
    return Settled(mode, resolved, reasons, notes, step_seconds)


def _training(search: Search, wanted: tuple[str, ...]) -> tuple[Values, Reasons, tuple[Note, ...], float]:
    """Choose the settings of a training run, with what had to be given up for memory, and the time of a step."""
    base, before = search.before(wanted)
    taken = with_fallbacks(search, base, wanted)
    reasons, notes = explained(search, taken)
    searched = {path: why for path, why in taken.searched.reasons.items() if path in wanted}
    return taken.searched.values, {**before, **searched, **reasons}, notes, taken.searched.step_seconds


def _fill_model(plan: Plan, mode_name: ModeName, machine: Machine | None, facts: Catalog, shared: Shared) -> ModePlan:
    """Choose the model first, then fill the rest."""
    cluster = resolve_cluster(plan.hardware, plan.pricing, facts, machine)

    def settled(named: Plan) -> Settled:
        resolved = resolve_plan(with_placeholders(named, facts), facts, machine, cluster=cluster)
        return _settled(named, mode_name, machine, facts, resolved, shared)

    chosen, reason = choose_model(plan, facts.modes[mode_name], cluster, facts, settled)
    return replace(chosen, reasons={Key.MODEL_NAME: reason, **chosen.reasons})


def with_auto_resolved(plan: Plan, machine: Machine | None, catalog: Catalog) -> Plan:
    """Return the plan with open fields filled as the balanced mode would."""
    return fill(plan, "balanced", machine, catalog).plan if open_fields(plan) else plan
