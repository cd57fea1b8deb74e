"""The doors to an answer: each way a plan's figures can be asked for, held against what planning it comes to.

A door is a function that yields differences of figures, a line each; it yields nothing where it does not lead to the
plan at all. Every comparison is exact: value, low and high.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, cast

import yaml
from drawn_plans import settings_of

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate, estimate_plan, figures_of
from capacity_tui.engine.estimate.figures.values import METRICS
from capacity_tui.engine.fleet import DeadlineQuestion, recommend
from capacity_tui.engine.fleet.migration import MigrationQuestion, job_kind_of, migrate
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.solve import EstimatedPlan, answer, growing_runs
from capacity_tui.engine.solve.advice import offers
from capacity_tui.engine.solve.changes import saves
from capacity_tui.engine.solve.modes import ModePlan, fill
from capacity_tui.engine.solve.modes.modes import open_fields
from capacity_tui.engine.solve.need import need
from capacity_tui.engine.solve.search import Question, parse_limit, search
from capacity_tui.engine.solve.space import Axis
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.tui.cli import main
from capacity_tui.tui.plan_document import PlanDocument

Figures: TypeAlias = Mapping[str, Interval]
TIME, USD = "computation.estimated_train_time_seconds", "cost.usd"
# What the one line and a base plan say, before all else is set.
NOT_SET = ("version", "model.name", "task", "hardware.name", "hardware.devices")
# Sections that no figure depends on.
OF_THE_RUN = ("watch", "recovery", "report", "scalability")
VERBS = {"train": "train", "finetune": "finetune", "infer": "serve"}
DEADLINE = 1e9
OTHERS = ("aws-p5-48xlarge", "aws-g6e-xlarge")  # Instances to compare a job with, and to choose among for it


@dataclass(frozen=True)
class Case:
    """A plan, and what planning it comes to."""

    plan: Plan  # as somebody wrote it, open fields and all
    filled: ModePlan  # as the balanced mode fills it
    catalog: Catalog  # facts
    folder: Path  # where files may be written
    # how many answers were held against what planning comes to
    held: list[int] = field(default_factory=lambda: [0], compare=False)

    @classmethod
    def of(cls, plan: Plan, catalog: Catalog, folder: Path) -> Case:
        """Return the case of a plan.

        Raises:
            CapacityError: it cannot be estimated.
        """
        return cls(plan, fill(plan, "balanced", None, catalog), catalog, folder)

    @property
    def settled(self) -> Plan:
        """The plan with nothing open."""
        return self.filled.resolved.plan

    @cached_property
    def figures(self) -> Figures:
        """Its figures."""
        return figures_of(self.filled.annotated_estimate)

    @cached_property
    def settings(self) -> dict[str, object] | None:
        """The settled plan as single settings beside what a base plan says; None where it has tables or lists."""
        document = cast("dict[str, object]", yaml.safe_load(dump_plan(self.settled)))
        found = {
            path: value
            for path, value in settings_of(document)
            if path not in NOT_SET and path.partition(".")[0] not in OF_THE_RUN and value not in (None, [])
        }
        return None if any(isinstance(value, list) for value in found.values()) else found

    def differences(self, told: Figures, planned: Figures) -> Iterator[str]:
        """Yield the figures that a door tells otherwise than planning, or that one of the two does not have."""
        self.held[0] += 1
        for key in METRICS:
            one, other = told.get(key), planned.get(key)
            if one != other:
                yield f"{key} is {_written(one)}, planning says {_written(other)}"

    def planned(self, change: Mapping[str, object]) -> Estimate:
        """Return what planning the plan with a change comes to.

        Raises:
            CapacityError: it cannot be planned.
        """
        return fill(edited(self.plan, change, self.catalog).plan, "balanced", None, self.catalog).estimate


def python_door(case: Case) -> Iterator[str]:
    """The answer of the Python interface, and the settled plan estimated as it stands."""
    yield from case.differences(figures_of(answer(case.plan, None, case.catalog).estimate), case.figures)
    if not open_fields(case.settled):
        yield from case.differences(figures_of(estimate_plan(case.settled, None, case.catalog).estimate), _own(case))


def file_door(case: Case) -> Iterator[str]:
    """The command ``plan`` on a YAML file of the plan."""
    path = case.folder / "plan.yaml"
    path.write_text(dump_plan(case.plan), encoding="utf-8")
    yield from _of_json(case, _command("plan", str(path)), case.figures)


def settings_door(case: Case) -> Iterator[str]:
    """The command ``plan`` on a base plan with everything else from ``--set``."""
    if case.settings is None:
        return
    base = {"task": case.settled.task, "model": {"name": case.settled.model.name}, "hardware": _hardware(case)}
    path = case.folder / "base.yaml"
    path.write_text(yaml.safe_dump(base), encoding="utf-8")
    yield from _of_json(case, _command("plan", str(path), *_set(case.settings)), _own(case))


def line_door(case: Case) -> Iterator[str]:
    """The command ``plan`` on one line, with everything that a line does not say from ``--set``."""
    verb = VERBS.get(str(case.settled.task))
    # A line always gives a job a length.
    is_endless = case.settled.task != "infer" and TIME not in case.figures
    if case.settings is None or verb is None or is_endless:
        return
    hardware = f"{case.settled.hardware.devices}x{case.settled.hardware.name}"
    yield from _of_json(
        case, _command("plan", f"{case.settled.model.name} {verb} {hardware}", *_set(case.settings)), _own(case)
    )


def screen_door(case: Case) -> Iterator[str]:
    """The table and the head of the screen."""
    compared = PlanDocument(case.plan, None, case.catalog).compare()
    columns = [each for each in compared.columns if case.filled.mode.title in (each.mode, *each.alike)]
    if not columns:
        yield f"no column of {case.filled.mode.title!r} among {[(each.mode, each.alike) for each in compared.columns]}"
        return
    case.held[0] += 1
    for row in columns[0].rows:
        known = case.figures.get(row.key)
        if known is None or row.value is None:
            if row.key in METRICS and (known is None) is not row.text.startswith("n/a"):
                yield f"{row.key}: the screen shows {row.text}, planning says {_written(known)}"
        elif row.value != known.value or (row.low is not None and (row.low, row.high) != (known.low, known.high)):
            yield f"{row.key}: the screen shows {row.value}, {row.low}, {row.high}, planning says {_written(known)}"
    if columns[0].verdict is not case.filled.annotated_estimate.verdict:
        yield f"the screen says {columns[0].verdict}, planning {case.filled.annotated_estimate.verdict}"


def search_door(case: Case) -> Iterator[str]:
    """The row of a search that varies nothing beyond what the plan has."""
    if open_fields(case.settled) or case.settled.task == "fit":
        return
    own = "inference.batch" if case.settled.task == "infer" else "training.micro_batch"
    question = Question(case.settled, vary=(Axis(own, (case.settled.value(own),)),))
    found = search(question, catalog=case.catalog)
    if found.top:
        yield from case.differences(found.top[0].figures, _own(case))
        if found.top[0].verdict is not case.filled.estimate.verdict:
            yield f"the row says {found.top[0].verdict}, planning {case.filled.estimate.verdict}"


def scale_door(case: Case) -> Iterator[str]:
    """The row of the scaling table for the devices that the plan has."""
    known = EstimatedPlan.of(case.plan, case.filled)
    for run in growing_runs(known, "strong"):
        if run.devices == int(case.filled.resolved.cluster.devices):
            yield from case.differences(figures_of(run.candidate.estimate), _own(case))
            return


def cloud_door(case: Case) -> Iterator[str]:
    """The row of the machine that a job is on now, beside others that it could move to."""
    moved = migrate(MigrationQuestion(case.plan, job_kind_of(case.plan), instances=OTHERS[:1]), case.catalog)
    if case.filled.estimate.fits is not False:
        yield from case.differences(moved.current.figures, _own(case))
    if moved.current.verdict is not case.filled.estimate.verdict:
        yield f"the row says {moved.current.verdict}, planning {case.filled.estimate.verdict}"
    for each in moved.alternatives:
        if each.figures:
            yield from _replanned(case, each.set, each.figures)


def need_door(case: Case) -> Iterator[str]:
    """The answer to a question asked backwards, and the next value, which does not keep the limits."""
    if case.settled.task == "fit":
        return
    solve = "training.micro_batch"
    if case.settled.task == "infer":
        loaded = case.plan.inference.request_rate is not None or case.plan.inference.concurrency is not None
        solve = "inference.prompt_tokens" if loaded else "inference.batch"
    question = Question(case.plan, limits=(parse_limit("memory<=90%", str(case.settled.task)),))
    try:
        needed = need(question, solve, catalog=case.catalog)
    except CapacityError:
        return
    if needed.best is not None:
        yield from _replanned(case, needed.best.change, figures_of(needed.best.estimate))
        if needed.neighbour is not None and needed.neighbour.holds:
            yield f"{solve}: the value after {needed.value} keeps the limits too"


def recommend_door(case: Case) -> Iterator[str]:
    """The rows of machines that do a job in time."""
    if case.settled.task == "infer" or TIME not in case.figures:
        return
    found = recommend(DeadlineQuestion(case.plan, DEADLINE, hardware=OTHERS, devices=(1, 8)), case.catalog)
    machines = {(each.instance, each.devices): each for each in (*found.cheapest, *found.fastest)}
    for each in machines.values():
        yield from _replanned(case, each.set, {TIME: each.seconds, USD: each.usd}, (TIME, USD))


def advice_door(case: Case) -> Iterator[str]:
    """Each piece of advice, and what planning its result changes."""
    before = case.filled.estimate
    for offer in offers(case.plan, case.filled):
        try:
            after = case.planned(offer.change)
        except CapacityError as error:
            yield f"{dict(offer.change)} cannot be planned: {error}"
            continue
        case.held[0] += 1
        if dict(offer.saves) != saves(before, after):
            yield f"{dict(offer.change)} is said to change {dict(offer.saves)}, planning it {saves(before, after)}"
        if offer.verdict is not after.verdict:
            yield f"{dict(offer.change)} is said to make it {offer.verdict}, planning it {after.verdict}"


DOORS: Mapping[str, Callable[[Case], Iterator[str]]] = {
    "python": python_door,
    "file": file_door,
    "settings": settings_door,
    "line": line_door,
    "screen": screen_door,
    "search": search_door,
    "scale": scale_door,
    "cloud": cloud_door,
    "need": need_door,
    "recommend": recommend_door,
    "advice": advice_door,
}


def _own(case: Case) -> Figures:
    """Return figures without what is told of the plan alone, such as the room for more requests."""
    return figures_of(case.filled.estimate)


def _replanned(
    case: Case, change: Mapping[str, object], told: Figures, keys: tuple[str, ...] = tuple(METRICS)
) -> Iterator[str]:
    try:
        planned = figures_of(case.planned(change))
    except CapacityError as error:
        yield f"{dict(change)} cannot be planned: {error}"
        return
    for line in case.differences(told, {key: planned[key] for key in keys if key in planned}):
        yield f"{dict(change)}: {line}"


def _hardware(case: Case) -> dict[str, object]:
    return {"name": case.settled.hardware.name, "devices": case.settled.hardware.devices}


def _set(settings: Mapping[str, object]) -> Iterator[str]:
    for path, value in settings.items():
        yield "--set"
        yield f"{path}={str(value).lower() if isinstance(value, bool) else value}"


def _command(*words: str) -> dict[str, object]:
    """Return what a command writes as JSON.

    Raises:
        AssertionError: it wrote none.
    """
    out = io.StringIO()
    with redirect_stdout(out):
        code = main([*words, "--format", "json"])
    assert out.getvalue(), f"code {code} of {words}"
    return cast("dict[str, object]", json.loads(out.getvalue()))


def _of_json(case: Case, document: dict[str, object], planned: Figures) -> Iterator[str]:
    """Yield where a document says another figure; bytes and counts of parameters are whole there."""
    case.held[0] += 1
    ranges = cast("dict[str, dict[str, float]]", document["ranges"])
    for key in METRICS:
        node, known = _node(document, key), planned.get(key)
        if node is None or known is None:
            if node is not None:
                yield f"{key} is {node}, planning says nothing"
            continue
        ends = {"low": None, "high": None, **ranges.get(key, {})}
        if isinstance(node, dict):
            ends, node = {"low": node["low"], "high": node["high"]}, node["value"]
        is_whole = isinstance(node, int)
        for name, told in (("value", node), *ends.items()):
            expected = getattr(known, name)
            if told is not None and told != (round(expected) if is_whole else expected):
                yield f"{key}: {name} is {told}, planning says {expected}"


def _node(document: object, key: str) -> object:
    for name in key.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    is_absent = isinstance(document, dict) and document.get("value") is None
    return None if is_absent else document


def _written(of: Interval | None) -> str:
    return "nothing" if of is None else f"{of.value!r} ({of.low!r} to {of.high!r})"
