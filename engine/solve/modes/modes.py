"""Three plans for one wish: conservative, balanced and extreme fill what the plan leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.cluster import Cluster, resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import (
    LESS,
    METRICS,
    Estimate,
    Note,
    ResolvedPlan,
    estimate_resolved,
    figure,
    resolve_plan,
)
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import (
    Plan,
    chosen_unless_given,
    given_sizes,
    model_sizes,
    open_jobs,
    placeholders,
    plan_layout,
    possible,
    with_following,
    with_values,
)
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes.mode_plan import ModePlan, Reasons, Settled, memory_budget
from capacity_tui.engine.solve.modes.model_choice import choose_model, explained, smallest_model, with_fallbacks
from capacity_tui.engine.solve.modes.training_settings import Search
from capacity_tui.engine.solve.space.axes import Values, divisors
from capacity_tui.engine.solve.space.space import SpaceCache

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
    filler = Filler(machine, catalog or load_catalog())
    if plan.model.name == AUTO:
        return Comparison(*(filler.with_model(plan, mode) for mode in MODES))
    resolved = filler.resolved(plan)
    if not open_fields(plan):
        estimate = estimate_resolved(resolved, filler.catalog)
        return Comparison(*(filler.as_given(mode, resolved, estimate) for mode in MODES))
    balanced = filler.filled(plan, "balanced", resolved)
    same_job = [filler.same_job(plan, mode, balanced) for mode in MODES if mode != "balanced"]
    return Comparison(same_job[0], balanced, same_job[1])


def fill(
    plan: Plan,
    mode_name: ModeName,
    machine: Machine | None = None,
    catalog: Catalog | None = None,
    named: ResolvedPlan | None = None,
) -> ModePlan:
    """Fill every open field as a mode would, and estimate the result; an open job is the balanced mode's.

    Args:
        named: a plan of the same model, hardware and prices, whose looked-up facts serve this one too.
    """
    filler = Filler(machine, catalog or load_catalog())
    if plan.model.name == AUTO:
        return filler.with_model(plan, mode_name)
    resolved = filler.resolved(plan, named)
    if not open_fields(plan):
        return filler.as_given(mode_name, resolved, estimate_resolved(resolved, filler.catalog))
    if mode_name == "balanced" or not _open_job(plan):
        return filler.filled(plan, mode_name, resolved)
    return filler.same_job(plan, mode_name, filler.filled(plan, "balanced", resolved))


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


def _open_job(plan: Plan) -> tuple[str, ...]:
    return tuple(path for path in open_jobs() if plan.value(path) == AUTO)


@dataclass(frozen=True, slots=True)
class Filler:
    """Fills open fields of plans on one machine; what is evaluated for one mode serves the others."""

    machine: Machine | None
    catalog: Catalog
    cache: SpaceCache = field(default_factory=SpaceCache)

    def resolved(self, plan: Plan, like: ResolvedPlan | None = None, cluster: Cluster | None = None) -> ResolvedPlan:
        """Return a plan resolved with placeholders where it is open."""
        placed = with_placeholders(plan, self.catalog)
        return resolve_plan(placed, self.catalog, self.machine, like, cluster=cluster)

    def as_given(self, mode_name: ModeName, resolved: ResolvedPlan, estimate: Estimate) -> ModePlan:
        """Return a plan without open settings as a mode has it."""
        return ModePlan.of(self._mode(mode_name, resolved), resolved, estimate, {}, self.catalog)

    def filled(self, plan: Plan, mode_name: ModeName, resolved: ResolvedPlan) -> ModePlan:
        """Fill the open fields of a plan that names its model; ``resolved`` holds placeholders in them."""
        return self._settled(plan, mode_name, resolved).filled

    def same_job(self, plan: Plan, mode_name: ModeName, balanced: ModePlan) -> ModePlan:
        """Fill a plan as a mode would, for the job that the balanced mode chose."""
        chosen = {path: balanced.plan.value(path) for path in _open_job(plan)}
        wished = with_values(plan, chosen)
        filled = self.filled(wished, mode_name, self.resolved(wished, balanced.resolved))
        job = {path: f"{_SAME_JOB}: {why}" for path, why in balanced.reasons.items() if path in chosen}
        return replace(filled, reasons={**job, **filled.reasons})

    def with_model(self, plan: Plan, mode_name: ModeName) -> ModePlan:
        """Choose the model first, then fill the rest."""
        cluster = resolve_cluster(plan.hardware, plan.pricing, self.catalog, self.machine)

        def resolved(named: Plan) -> ResolvedPlan:
            return self.resolved(named, cluster=cluster)

        def settled(named: Plan, placed: ResolvedPlan) -> Settled:
            return self._settled(named, mode_name, placed)

        chosen, reason = choose_model(plan, self.catalog.modes[mode_name], cluster, self.catalog, resolved, settled)
        return replace(chosen, reasons={Key.MODEL_NAME: reason, **chosen.reasons})

    def _mode(self, mode_name: ModeName, resolved: ResolvedPlan) -> Mode:
        mode = self.catalog.modes[mode_name]
        return mode.served if resolved.plan.is_inference else mode

    def _settled(self, plan: Plan, mode_name: ModeName, resolved: ResolvedPlan) -> Settled:
        """Choose the open fields of a plan that names its model; ``resolved`` holds placeholders in them."""
        mode, wanted, shape = self._mode(mode_name, resolved), open_fields(plan), resolved.shape
        budget, base = memory_budget(mode, resolved.cluster), with_placeholders(plan, self.catalog)
        notes: tuple[Note, ...] = ()
        step_seconds: float | None = None

        def resolve(values: Mapping[str, object]) -> ResolvedPlan:
            return resolve_plan(with_values(base, values), self.catalog, self.machine, resolved)

        def estimated(values: Mapping[str, object]) -> Estimate:
            return estimate_resolved(resolve(values), self.catalog)

        # What chooses is loaded for its own kind of plan alone.
        if resolved.plan.is_inference:
            if shape is None:
                from capacity_tui.engine.solve.modes.network_settings import choose_served_batch  # noqa: PLC0415

                values, reasons = choose_served_batch(wanted, mode, budget, estimated)
            else:
                from capacity_tui.engine.solve.modes.serving_settings import choose_serving  # noqa: PLC0415

                values, reasons = choose_serving(plan, resolved, shape, wanted, mode, self.catalog, self.cache)
            if isinstance(plan.parallelism.dp, int):
                values[Key.PARALLELISM_DP] = plan.parallelism.dp
        elif shape is None:
            from capacity_tui.engine.solve.modes.network_settings import choose_spec_parameters  # noqa: PLC0415

            values, reasons = choose_spec_parameters(resolved, wanted, mode, budget, estimated)
        else:
            search = Search(plan, resolved, mode, self.catalog, self.machine, self.cache)
            values, reasons, notes, step_seconds = _training(search, wanted)
        if isinstance(plan.training.global_batch, int):
            values[Key.TRAINING_GLOBAL_BATCH] = plan.training.global_batch
        return Settled(mode, resolve(values), reasons, self.catalog, notes, step_seconds)


def _training(search: Search, wanted: tuple[str, ...]) -> tuple[Values, Reasons, tuple[Note, ...], float]:
    """Choose the settings of a training run, with what had to be given up for memory, and the time of a step."""
    base, before = search.before(wanted)
    outcome = with_fallbacks(search, base, wanted)
    reasons, notes = explained(search, outcome)
    chosen = {path: why for path, why in outcome.searched.reasons.items() if path in wanted}
    return outcome.searched.values, {**before, **chosen, **reasons}, notes, outcome.searched.step_seconds


def with_auto_resolved(plan: Plan, machine: Machine | None, catalog: Catalog) -> Plan:
    """Return the plan with open fields filled as the balanced mode would."""
    return fill(plan, "balanced", machine, catalog).plan if open_fields(plan) else plan


MODEL = Key.MODEL_NAME
THE_PLAN = "the plan"  # Stands over the one column of a plan that leaves nothing open

# Figures by which a plan beats another: it is worse in none of them, and better in one.
COMPARED = (
    Figure.MEMORY_RESERVED_BYTES,
    Figure.TOKENS_PER_SECOND,
    Figure.SAMPLES_PER_SECOND,
    Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS,
    Figure.REQUESTS_PER_SECOND,
    Figure.COST_USD_PER_MILLION_TOKENS,
)

SAME = 0.005  # Figures that differ by less than this share are the same


@dataclass(frozen=True, slots=True)
class ModeGroup:
    """Modes of which one column stands for all."""

    # the plans that are the same but for what they say of the run while it goes on; never empty
    plans: tuple[ModePlan, ...]
    # plans of other modes that are better than these in nothing and worse in something
    beaten: tuple[ModePlan, ...] = ()

    @property
    def shown(self) -> ModePlan:
        """The one that stands for all: the balanced mode's where it is among them."""
        return next((plan for plan in self.plans if plan.mode.id == "balanced"), self.plans[0])

    @property
    def modes(self) -> tuple[str, ...]:
        """The names of all modes that the column stands for."""
        return tuple(plan.mode.title for plan in (*self.plans, *self.beaten))

    @property
    def title(self) -> str:
        """The names of the modes with this plan."""
        return " = ".join(plan.mode.title for plan in self.plans)

    @property
    def head(self) -> str:
        """What stands over the column."""
        return self.title if self.shown.reasons else THE_PLAN


def single(plan: ModePlan) -> ModeGroup:
    """Return a plan that stands by itself."""
    return ModeGroup((plan,))


def mode_groups(columns: Sequence[ModePlan]) -> tuple[ModeGroup, ...]:
    """Return the modes of a comparison, those with the same plan, or a plan that another beats, as one."""
    same: list[list[ModePlan]] = []
    for column in columns:
        group = next((group for group in same if group[0].settings == column.settings), None)
        if group is None:
            same.append([column])
        else:
            group.append(column)
    # The balanced mode's plan is the answer wherever no mode is named: its column stays.
    beaten_by = {
        index: None
        if any(plan.mode.id == "balanced" for plan in group)
        else next((by for by, other in enumerate(same) if by != index and beats(other[0], group[0])), None)
        for index, group in enumerate(same)
    }
    return tuple(
        ModeGroup(tuple(group), tuple(plan for other, by in beaten_by.items() if by == index for plan in same[other]))
        for index, group in enumerate(same)
        if beaten_by[index] is None
    )


def beats(one: ModePlan, other: ModePlan) -> bool:
    """Whether a plan for the same job is better than another in some figure and worse in none."""
    if one.plan.model != other.plan.model:
        return False
    better = False
    for key in COMPARED:
        mine, theirs = figure(one.estimate, key).number, figure(other.estimate, key).number
        if mine is None or theirs is None:
            if mine is not theirs:
                return False
            continue
        gain = (theirs - mine) if METRICS[key].better == LESS else (mine - theirs)
        if gain < -SAME * abs(theirs):
            return False
        better = better or gain > SAME * abs(theirs)
    return better


def remarks(groups: Sequence[ModeGroup]) -> Iterator[str]:
    """Yield what to know of the columns as a whole: which modes are the same, and whether the jobs are."""
    for group in groups:
        if not group.shown.reasons:
            yield f"{group.title}: nothing is open"
        elif len(group.plans) > 1:
            yield f"{group.title}: the same settings"
        if group.beaten:
            yield f"{', '.join(plan.mode.title for plan in group.beaten)}: no better in any figure than {group.title}"
    if any(MODEL in group.shown.reasons for group in groups):
        yield "the model is open, so each mode takes another: the columns are different jobs"


def feasible_sizes(plan: Plan, path: str, catalog: Catalog, machine: Machine | None = None) -> tuple[int, ...]:
    """Return the values of one parallel size that leave a layout that can be, all other sizes as they are.

    Args:
        plan: the plan; its replicas follow from the other sizes.
        path: field of the size, such as ``parallelism.tp``.

    Returns:
        The values in order; none for other fields, for models that are not divided, and where the rest of the plan
        cannot be laid out.
    """
    if path not in model_sizes():
        return ()
    name = path.rpartition(".")[2]
    try:
        resolved = resolve_plan(with_placeholders(plan, catalog), catalog, machine)
    except CapacityError:
        return ()
    if resolved.shape is None:
        return ()
    layout = plan_layout(resolved.plan, resolved.shape, catalog)
    sizes = np.array(divisors(int(layout.devices)), dtype=np.float64)
    layouts = replace(layout, **{name: sizes}, micro_batches=0.0, global_batch=0.0)
    layouts = with_following(layouts, given_sizes(plan.parallelism) - {"dp"})
    return tuple(int(size) for size in sizes[np.broadcast_to(possible(layouts), sizes.shape)])
