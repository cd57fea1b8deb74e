"""A plan with the machine it is edited on, as the screen sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Cluster, resolve_cluster
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan, edited, pinned, renamed, taken, unpinned
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.plan.line import Asked
from capacity_tui.engine.present import ExplanationText, explanation_text
from capacity_tui.engine.present.pictures import PICTURES, Picture, picture_of
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import EstimatedPlan, explain, ladder
from capacity_tui.engine.solve.advice import offers
from capacity_tui.engine.solve.modes import Comparison as EngineComparison
from capacity_tui.engine.solve.modes import FieldLimit, ModePlan, compare, feasible_sizes, fill, to_the_limit
from capacity_tui.tui.shown.comparison import Advice, Comparison, Row, Trial
from capacity_tui.tui.shown.results import Export, Field, SizedModel
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.plan.field_values import Pair, advice_of, field_lines, trial, trial_pairs
from capacity_tui.tui.views.plan.hardware_facts import cluster_rows, hardware_words, run_words, simulated
from capacity_tui.tui.views.plan.present import PinnedPlans, column, exports_of, setting_reason, warning_lines

if TYPE_CHECKING:
    from capacity_tui.tui.shown.scale import Clustered, ScaledPlan
    from capacity_tui.tui.views.cloud.screen import OffersQuestion
    from capacity_tui.tui.views.find.screen import SearchQuestion
    from capacity_tui.tui.views.scale.corpus_question import PlanCorpus


_NOT_IN_NAMES = re.compile(r"[^\w.]+")  # What names of files do without


@dataclass(frozen=True)
class PlanDocument:
    """A plan of the engine's on the machine it is edited on."""

    plan: Plan
    machine: Machine | None
    catalog: Catalog = field(compare=False, repr=False)  # the catalogues
    # estimates of the plans beside it
    pinned_plans: PinnedPlans = field(default_factory=PinnedPlans, compare=False, repr=False)
    # what moved along with the change that made the plan, each with the reason
    followed: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    # what the line asks that the plan comes from, until the plan is changed
    asked: Asked | None = field(default=None, compare=False, repr=False)

    @property
    def answered_in(self) -> str:
        return "find" if self.asked is not None else ""

    @property
    def name(self) -> str:
        return self.plan.model.name or Path(self.plan.model.config or "plan").stem

    def fields(self) -> tuple[Field, ...]:
        return self._fields

    def sizes(self, key: str) -> tuple[int, ...]:
        return feasible_sizes(self.plan, key, self.catalog, self.machine)

    def edited(self, key: str, text: str) -> PlanDocument:
        return self.changed({key: text})

    def changed(self, change: Mapping[str, object]) -> PlanDocument:
        if (foreseen := self._foreseen.get(repr(change))) is not None:
            self._foreseen.clear()
            return foreseen
        after = edited(self.plan, change, self.catalog)
        followed = {entry.path: entry.why for entry in after.followed}
        return replace(self, plan=after.plan, followed=followed, asked=None)

    def unanswered(self) -> PlanDocument:
        return replace(self)

    def foresee(self, change: Mapping[str, object]) -> None:
        after = self.changed(change)
        after.compare()
        self._foreseen[repr(change)] = after

    def trial(self, key: str, text: str) -> Trial:
        return trial(self.plan, {key: text}, self.catalog, self.machine)

    def trial_pairs(self, keys: Pair, pairs: Sequence[Pair]) -> Iterator[tuple[Mapping[Pair, Trial], bool]]:
        return trial_pairs(self.plan, self._compared.balanced, keys, pairs, self.machine)

    def limit(self, mode: str, key: str) -> FieldLimit:
        if self.sizes(key):
            raise PlanError("a layout has no limit of its own", hint="+ and - step through the layouts that can be")
        return to_the_limit(self._mode(mode).plan, key, self.machine, self.catalog)

    def ladder(self) -> tuple[SizedModel, ...]:
        rungs = ladder(self.plan, self.machine, self.catalog)
        return tuple(
            SizedModel(one.way, one.model, one.room, one.share, one.speed, one.is_comfortable, one.values)
            for one in rungs
        )

    def compare(self) -> Comparison:
        return self._comparison

    @cached_property
    def _comparison(self) -> Comparison:
        compared = self._compared
        balanced, cluster = compared.balanced.plan, compared.balanced.resolved.cluster
        columns = (
            *(column(group, self.catalog, self.machine) for group in compared.groups),
            *(self.pinned_plans.column(*pin, self.machine, self.catalog) for pin in self.plan.scenarios.items()),
        )
        return Comparison(
            title=" · ".join(
                (balanced.model.name or self.name, run_words(balanced), hardware_words(self.plan, cluster))
            ),
            columns=columns,
            hardware=cluster_rows(self.plan, cluster, self.machine),
            simulated=simulated(self.plan, cluster, self.machine),
            remarks=compared.remarks,
            usual=compared.balanced.mode.title,
        )

    def advice(self, mode: str) -> tuple[Advice, ...]:
        return tuple(map(advice_of, offers(self.plan, self._mode(mode), self.machine)))

    def scaled(self, mode: str, growth: str) -> Iterator[ScaledPlan]:
        from capacity_tui.tui.views.scale.present import scaled_plans

        return scaled_plans(self._case(mode), growth)

    def clustered(self, mode: str) -> Iterator[Clustered]:
        from capacity_tui.tui.views.cluster.present import clustered

        return clustered(self._case(mode), self.plan)

    def stored(self, mode: str) -> tuple[Row, ...]:
        from capacity_tui.tui.views.scale.present import stored_rows

        filled = self._mode(mode)
        return stored_rows(self.machine, Answer(filled.resolved, filled.estimate), self.catalog)

    def corpus(self, given: Mapping[str, str]) -> PlanCorpus:
        from capacity_tui.tui.views.scale.corpus_question import PlanCorpus

        return PlanCorpus(_without_pins(self.plan), self.machine, self.catalog, given)

    def explain(self, mode: str, key: str) -> ExplanationText:
        filled = self._mode(mode)
        if chosen := setting_reason(filled, mode, key):
            return chosen
        explanation = explanation_text(explain(filled.plan, key, self.machine, self.catalog), mode)
        picture = picture_of(key, Answer(filled.resolved, filled.estimate))
        return replace(explanation, remarks=(*explanation.remarks, *warning_lines(filled.estimate)), picture=picture)

    def dump(self, mode: str | None = None) -> str:
        if mode is None:
            return dump_plan(self.plan)
        return dump_plan(_without_pins(self._mode(mode).plan), self._what(mode))

    def pins(self) -> tuple[str, ...]:
        return tuple(self.plan.scenarios)

    def pinned(self, mode: str) -> PlanDocument:
        return replace(self, plan=pinned(self.plan, self._mode(mode).plan))

    def pinned_with(self, change: Mapping[str, object]) -> PlanDocument:
        changed = edited(_without_pins(self.plan), change, self.catalog).plan
        return replace(self, plan=pinned(self.plan, fill(changed, "balanced", self.machine, self.catalog).plan))

    def pinned_with_plan(self, other: Document) -> PlanDocument:
        return replace(self, plan=pinned(self.plan, cast("PlanDocument", other).plan))

    def replaced_by(self, other: Document) -> PlanDocument:
        plan = cast("PlanDocument", other).plan.model_copy(update={Key.SCENARIOS: self.plan.scenarios})
        return replace(self, plan=plan, followed={})

    def question(self, given: Mapping[str, str]) -> SearchQuestion:
        from capacity_tui.tui.views.find.screen import SearchQuestion, parts_asked

        parts = given
        if not given and self.asked is not None:
            parts = parts_asked(self.asked, self.plan)
        return SearchQuestion(_without_pins(self.plan), self.machine, self.catalog, parts)

    def migration(self, mode: str, given: Mapping[str, str]) -> OffersQuestion:
        from capacity_tui.tui.views.cloud.screen import OffersQuestion

        filled_by = self._mode(mode).mode.id if mode else ""
        return OffersQuestion(_without_pins(self.plan), self.machine, self.catalog, given, filled_by)

    def unpinned(self, name: str) -> PlanDocument:
        return replace(self, plan=unpinned(self.plan, name))

    def taken(self, name: str) -> PlanDocument:
        return replace(self, plan=taken(self.plan, name), followed={})

    def renamed(self, name: str, new: str) -> PlanDocument:
        return replace(self, plan=renamed(self.plan, name, new))

    def exports(self, mode: str) -> tuple[Export, ...]:
        filled = self._mode(mode)
        # What leaves open what the balanced mode fills is the shorter plan of the same.
        is_usual = mode not in self.pins() and filled.mode.id == self._compared.balanced.mode.id
        written, settled = _without_pins(self.plan if is_usual else filled.plan), _without_pins(filled.plan)
        name = _NOT_IN_NAMES.sub("-", f"{self.name}-{mode}".casefold()).strip("-")
        return exports_of(written, settled, name, self._what(mode), self.machine, self.catalog)

    def pictures(self, mode: str) -> tuple[tuple[str, Picture], ...]:
        filled = self._mode(mode)
        answered = Answer(filled.resolved, filled.estimate)
        drawn = ((title, picture_of(group, answered)) for group, title in PICTURES.items())
        return tuple((title, picture) for title, picture in drawn if picture is not None)

    def _what(self, mode: str) -> str:
        return f"Pinned as {mode}." if mode in self.pins() else f"As the {mode} mode fills it."

    def _case(self, mode: str) -> EstimatedPlan:
        """Return the plan as a mode fills it, with all it takes to estimate it again."""
        filled = self._mode(mode)
        return EstimatedPlan.of(_without_pins(self.plan), filled, self.machine)

    def _mode(self, mode: str) -> ModePlan:
        pin = self.plan.scenarios.get(mode)
        if pin is not None:
            return self.pinned_plans.filled(pin, self.machine, self.catalog)
        return next(plan for plan in self._compared.columns if plan.mode.title == mode)

    @cached_property
    def _fields(self) -> tuple[Field, ...]:
        return field_lines(self.plan, self.catalog, self._cluster)

    @cached_property
    def _cluster(self) -> Cluster | None:
        """What the plan's hardware stands for; None where nothing does."""
        try:
            return resolve_cluster(self.plan.hardware, self.plan.pricing, self.catalog, self.machine)
        except CapacityError:
            return None

    @cached_property
    def _foreseen(self) -> dict[str, PlanDocument]:
        """What was estimated ahead, until one of it is taken."""
        return {}

    @cached_property
    def _compared(self) -> EngineComparison:
        return compare(self.plan, self.machine, self.catalog)


def _without_pins(plan: Plan) -> Plan:
    return plan.model_copy(update={Key.SCENARIOS: {}})
