"""The engine as the screen sees it: the only module of the screen that calls it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, cast

from capacity_tui.engine import api as engine
from capacity_tui.engine.api import (
    PICTURES,
    Answer,
    CapacityError,
    Catalog,
    Cluster,
    EstimatedPlan,
    ExplanationText,
    Limit,
    Machine,
    ModePlan,
    Part,
    Picture,
    Plan,
    PlanError,
    dump_plan,
    edited,
    example_names,
    example_text,
    explanation_text,
    fill,
    load_catalog,
    load_plan,
    locate_plan,
    offers,
    picture_of,
    plan_from_text,
    plans_folder,
    possible_sizes,
    read_plan_file,
    resolve_cluster,
    to_the_limit,
    write_plan_file,
)
from capacity_tui.engine.api import Comparison as EngineComparison
from capacity_tui.tui.screens.cloud.cloud_view import OffersQuestion
from capacity_tui.tui.screens.cluster.cluster_view import clustered
from capacity_tui.tui.screens.dialogs.catalogue_view import choices
from capacity_tui.tui.screens.find.find_view import SearchQuestion
from capacity_tui.tui.screens.machine.benchmarks_view import Benchmarks
from capacity_tui.tui.screens.plan.advice_view import advice_of
from capacity_tui.tui.screens.plan.estimate_view import column, setting_reason, warning_lines
from capacity_tui.tui.screens.plan.export_view import exports_of
from capacity_tui.tui.screens.plan.field_view import field_lines
from capacity_tui.tui.screens.plan.hardware_view import (
    cluster_rows,
    hardware_words,
    load_rows,
    machine_rows,
    run_words,
    simulated,
)
from capacity_tui.tui.screens.plan.live_view import LiveSampler
from capacity_tui.tui.screens.plan.pins_view import PinnedPlans
from capacity_tui.tui.screens.plan.tried_view import Pair, tried, tried_pairs
from capacity_tui.tui.screens.run.run_view import WatchedRuns
from capacity_tui.tui.screens.scale.corpus_view import PlanCorpus
from capacity_tui.tui.screens.scale.scale_view import scaled_plans
from capacity_tui.tui.screens.scale.storage_view import stored_rows
from capacity_tui.tui.shown.compared import Comparison, HardwareRow, Row
from capacity_tui.tui.shown.exported import Export
from capacity_tui.tui.shown.measured import BenchmarkOutcome, BenchmarkStep, Load
from capacity_tui.tui.shown.tried import Tried
from capacity_tui.tui.shown.understood import Suggestion, Understood
from capacity_tui.tui.shown.what_if import Advice
from capacity_tui.tui.view import Choice, Document, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from capacity_tui.tui.shown.clustered import Clustered
    from capacity_tui.tui.shown.scaled import ScaledPlan


_NOT_IN_NAMES = re.compile(r"[^\w.]+")
"""What names of files do without."""
_LOAD_SECONDS = 0.2
"""Between two readings of what is busy."""


@dataclass(frozen=True)
class PlanDocument:
    """A plan of the engine's on the machine it is edited on.

    Attributes:
        plan: the plan.
        machine: what was detected.
        catalog: the catalogues.
        beside: estimates of the plans beside it.
        followed: what moved along with the change that made the plan, each with the reason.
    """

    plan: Plan
    machine: Machine | None
    catalog: Catalog = field(compare=False, repr=False)
    beside: PinnedPlans = field(default_factory=PinnedPlans, compare=False, repr=False)
    followed: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The model's name, which also names the file."""
        return self.plan.model.name or Path(self.plan.model.config or "plan").stem

    def fields(self) -> tuple[Field, ...]:
        """Return the lines of the configuration."""
        return self._fields

    def sizes(self, key: str) -> tuple[int, ...]:
        """Return the parallel sizes with which the plan can be laid out; none for other fields."""
        return possible_sizes(self.plan, key, self.catalog, self.machine)

    def edited(self, key: str, text: str) -> PlanDocument:
        """Return the plan with one field changed; ``auto`` gives it back to the modes, or to its default."""
        return self.changed({key: text})

    def changed(self, change: Mapping[str, object]) -> PlanDocument:
        """Return the plan with several fields changed at once."""
        after = edited(self.plan, change, self.catalog)
        return replace(self, plan=after.plan, followed={entry.path: entry.why for entry in after.followed})

    def tried(self, key: str, text: str) -> Tried:
        """Return what the plan would be with one field changed, or why it cannot be."""
        return tried(self.plan, {key: text}, self.catalog, self.machine)

    def tried_pairs(self, keys: Pair, pairs: Sequence[Pair]) -> Iterator[tuple[Mapping[Pair, Tried], bool]]:
        """Yield what the plan would be with pairs of values of two fields, and whether that is the last word."""
        return tried_pairs(self.plan, self._compared.balanced, keys, pairs, self.machine)

    def limit(self, mode: str, key: str) -> Limit:
        """Return the largest value of a field with which the plan fits as a mode fills it."""
        if self.sizes(key):
            raise PlanError("a layout has no limit of its own", hint="+ and - step through the layouts that can be")
        return to_the_limit(self._mode(mode).plan, key, self.machine, self.catalog)

    def compare(self) -> Comparison:
        """Estimate the plan in its modes."""
        compared = self._compared
        cluster = compared.balanced.resolved.cluster
        columns = (
            *(column(group, self.catalog, self.machine) for group in compared.alike),
            *(self.beside.column(*pin, self.machine, self.catalog) for pin in self.plan.scenarios.items()),
        )
        return Comparison(
            title=" · ".join((self.name, run_words(compared.balanced.plan), hardware_words(self.plan, cluster))),
            columns=columns,
            hardware=cluster_rows(self.plan, cluster, self.machine),
            simulated=simulated(self.plan, cluster, self.machine),
            remarks=compared.remarks,
            usual=compared.balanced.mode.title,
        )

    def advice(self, mode: str, is_wanted: Callable[[], bool]) -> tuple[Advice, ...]:
        """Return what would improve the plan as a mode fills it, the best first."""
        return tuple(map(advice_of, offers(self.plan, self._mode(mode), self.machine, is_wanted)))

    def scaled(self, mode: str, growth: str) -> Iterator[ScaledPlan]:
        """Yield the plan as a mode fills it on more and more devices."""
        return scaled_plans(self._case(mode), growth)

    def clustered(self, mode: str) -> Iterator[Clustered]:
        """Yield where the plan as a mode fills it lies on its cluster, then its nodes as they are now."""
        return clustered(self._case(mode), self.plan)

    def stored(self, mode: str) -> tuple[Row, ...]:
        """Return what the plan as a mode fills it keeps on disk, and reads from there."""
        filled = self._mode(mode)
        return stored_rows(self.machine, Answer(filled.resolved, filled.estimate), self.catalog)

    def corpus(self, said: Mapping[str, str]) -> PlanCorpus:
        """Return the plan's data as a corpus of patterns."""
        return PlanCorpus(_alone(self.plan), self.machine, self.catalog, said)

    def explain(self, mode: str, key: str) -> ExplanationText:
        """Say where a number of a mode comes from."""
        filled = self._mode(mode)
        if chosen := setting_reason(filled, mode, key):
            return chosen
        found = explanation_text(engine.explain(filled.plan, key, self.machine, self.catalog), mode)
        picture = picture_of(key, Answer(filled.resolved, filled.estimate))
        return replace(found, remarks=(*found.remarks, *warning_lines(filled.estimate)), picture=picture)

    def dump(self, mode: str | None = None) -> str:
        """Return the plan as YAML; of a mode with everything chosen, without one as it was written."""
        if mode is None:
            return dump_plan(self.plan)
        return dump_plan(_alone(self._mode(mode).plan), self._what(mode))

    def pins(self) -> tuple[str, ...]:
        """Return the names of the plans beside it."""
        return tuple(self.plan.scenarios)

    def pinned(self, mode: str) -> PlanDocument:
        """Return the plan with that of a mode beside it."""
        return replace(self, plan=engine.pinned(self.plan, self._mode(mode).plan))

    def pinned_with(self, change: Mapping[str, object]) -> PlanDocument:
        """Return the plan with what a change makes of it beside it, as the balanced mode fills that."""
        changed = edited(_alone(self.plan), change, self.catalog).plan
        return replace(self, plan=engine.pinned(self.plan, fill(changed, "balanced", self.machine, self.catalog).plan))

    def pinned_beside(self, other: Document) -> PlanDocument:
        """Return the plan with another one beside it."""
        return replace(self, plan=engine.pinned(self.plan, cast("PlanDocument", other).plan))

    def replaced_by(self, other: Document) -> PlanDocument:
        """Return another plan with those that stand beside this one."""
        plan = cast("PlanDocument", other).plan.model_copy(update={"scenarios": self.plan.scenarios})
        return replace(self, plan=plan, followed={})

    def question(self, said: Mapping[str, str]) -> SearchQuestion:
        """Return what to search for around the plan."""
        return SearchQuestion(_alone(self.plan), self.machine, self.catalog, said)

    def migration(self, said: Mapping[str, str]) -> OffersQuestion:
        """Return what the plan would be worth on other machines."""
        return OffersQuestion(_alone(self.plan), self.machine, self.catalog, said)

    def unpinned(self, name: str) -> PlanDocument:
        """Return the plan without one of those beside it."""
        return replace(self, plan=engine.unpinned(self.plan, name))

    def taken(self, name: str) -> PlanDocument:
        """Return one of the plans beside it in its place."""
        return replace(self, plan=engine.taken(self.plan, name), followed={})

    def renamed(self, name: str, new: str) -> PlanDocument:
        """Return the plan with another name for one of those beside it."""
        return replace(self, plan=engine.renamed(self.plan, name, new))

    def exports(self, mode: str) -> tuple[Export, ...]:
        """Return every form in which the plan, as a mode fills it, can leave the program."""
        filled = self._mode(mode)
        # What leaves open what the balanced mode fills is the shorter plan of the same.
        is_usual = mode not in self.pins() and filled.mode.id == self._compared.balanced.mode.id
        said, settled = _alone(self.plan if is_usual else filled.plan), _alone(filled.plan)
        name = _NOT_IN_NAMES.sub("-", f"{self.name}-{mode}".casefold()).strip("-")
        return exports_of(said, settled, name, self._what(mode), self.machine, self.catalog)

    def pictures(self, mode: str) -> tuple[tuple[str, Picture], ...]:
        """Return what there is to draw of the plan as a mode fills it, with titles."""
        filled = self._mode(mode)
        answered = Answer(filled.resolved, filled.estimate)
        drawn = ((title, picture_of(group, answered)) for group, title in PICTURES.items())
        return tuple((title, picture) for title, picture in drawn if picture is not None)

    def _what(self, mode: str) -> str:
        """Return what the plan of a column is, in words."""
        return f"Pinned as {mode}." if mode in self.pins() else f"As the {mode} mode fills it."

    def _case(self, mode: str) -> EstimatedPlan:
        """Return the plan as a mode fills it, with all it takes to estimate it again."""
        filled = self._mode(mode)
        return EstimatedPlan(_alone(self.plan), filled.resolved, filled.estimate, self.catalog, self.machine)

    def _mode(self, mode: str) -> ModePlan:
        """Return the plan of a mode, or one that is pinned."""
        pin = self.plan.scenarios.get(mode)
        if pin is not None:
            return self.beside.filled(pin, self.machine, self.catalog)
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
    def _compared(self) -> EngineComparison:
        return engine.compare(self.plan, self.machine, self.catalog)


def _alone(plan: Plan) -> Plan:
    """Return a plan without those that are pinned beside it."""
    return plan.model_copy(update={"scenarios": {}})


class CapacityEngine:
    """The engine, with the catalogues and this machine."""

    def __init__(self) -> None:
        self._catalog = load_catalog()
        self._machine: Machine | None = None
        self._benchmarks = Benchmarks()

    def detect(self) -> tuple[HardwareRow, ...]:
        """Look at this machine."""
        self._machine = engine.detect()
        return machine_rows(self._machine)

    def machine_report(self, document: Document | None, ascii_only: bool) -> tuple[Part, ...]:
        """Return all that is known about this machine, and what the plan meets on it."""
        machine = self._found()
        shown = document if isinstance(document, PlanDocument) else self.propose()
        if shown.plan.hardware.name != "detected":
            shown = self.propose()
        parts, measured = engine.machine_report_parts, self._benchmarks
        return tuple(parts(machine, shown.plan, measured.report, self._catalog, ascii_only, measured.before))

    def machine_load(self) -> tuple[Load, ...]:
        """Return how full and how busy this machine is."""
        sampler = LiveSampler()
        time.sleep(_LOAD_SECONDS)
        return load_rows(self._found(), sampler.sample())

    def benchmark(self, progress: Callable[[BenchmarkStep], None], cancelled: Event) -> BenchmarkOutcome:
        """Measure this machine, keep what was measured, and look at the machine again."""
        return self._benchmarks.run(self._found(), progress, cancelled, self.detect)

    def renewed(self, document: Document) -> Document:
        """Return the same plan on this machine as it was last looked at."""
        return replace(document, machine=self._machine) if isinstance(document, PlanDocument) else document

    def propose(self, hardware: str | None = None) -> PlanDocument:
        """Return a plan that suits this machine, or other hardware, such as ``8xH100-SXM``."""
        return self._document(engine.propose(self._machine, hardware, self._catalog))

    def read_line(self, text: str, cursor: int) -> Understood:
        """Return what a line says."""
        line = engine.read_line(text, self._catalog)
        found = engine.completions(text, cursor, self._catalog)
        return Understood(
            line.understood,
            line.guesses,
            tuple(fault.one_line() for fault in line.faults),
            tuple(Suggestion(entry.text, entry.kind, entry.line, entry.cursor) for entry in found),
        )

    def plan_of_line(self, text: str, document: Document | None) -> tuple[PlanDocument, tuple[str, ...]]:
        """Return the plan that a line says, and what was guessed."""
        hardware = document.plan.hardware if isinstance(document, PlanDocument) else None
        made = engine.plan_of_line(engine.read_line(text, self._catalog), self._found(), hardware, self._catalog)
        return self._document(made.plan), made.assumed

    def locate(self, source: Path) -> Path | str:
        """Return the file that is meant by a path or the name of a saved plan; an example has its name alone."""
        return locate_plan(str(source))

    def open(self, source: Path | str) -> PlanDocument:
        """Read a plan from a file, an example by name, or text."""
        if isinstance(source, Path):
            plan = read_plan_file(source) if source.parent == plans_folder() else load_plan(source)
        elif source in example_names():
            plan = plan_from_text(example_text(source), source)
        else:
            plan = plan_from_text(source, "plan")
        return self._document(plan)

    def catalogue(self, name: str) -> tuple[Choice, ...]:
        """Return what can be picked."""
        return choices(name, self._catalog, self._machine)

    def save(self, path: Path, text: str) -> Path | None:
        """Write a plan; return where a damaged file that was there went."""
        return write_plan_file(path, text, overwrite=True)

    def plans_folder(self) -> Path:
        """Return where plans are saved under a name."""
        return plans_folder()

    def sampler(self) -> LiveSampler:
        """Return the reader of this machine's sensors."""
        return LiveSampler()

    def runs(self, history: str) -> WatchedRuns:
        """Return the reader of runs that go on and are past."""
        return WatchedRuns(self._catalog, self._found, self._document, history)

    def _found(self) -> Machine:
        if self._machine is None:
            self.detect()
        return cast("Machine", self._machine)

    def _document(self, plan: Plan) -> PlanDocument:
        return PlanDocument(plan, self._machine, self._catalog)
