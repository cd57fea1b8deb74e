"""The engine's answer to a search, or to a limit solved for, as rows and columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.estimate import METRICS as FIGURES
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan, all_fields, field_label
from capacity_tui.engine.present import (
    TextPart,
    column_figures,
    column_head,
    column_unit,
    needed_parts,
    plan_value_text,
)
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import Candidate
from capacity_tui.engine.solve.need import Needed, need, solved_path
from capacity_tui.engine.solve.search import Answer as SearchAnswer
from capacity_tui.engine.solve.search import Question, Rejected, SearchResult
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.shown.results import Cell, ResultRow, Results, TableColumn
from capacity_tui.tui.views.query_view.search import figure_cell, range_text

_MODEL, _HARDWARE, _DEVICES = Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES
_NAMED: Mapping[str, str] = {_MODEL: "model", _HARDWARE: "hardware", _DEVICES: "n"}
_SIZES = ("tp", "pp", "cp", "ep", "interleave")
_LAYOUT = "parallelism."
_OTHERS_RANK, _LAYOUT_RANK = 6, 4


def weighed_figures(plan: Plan, goal: str) -> tuple[str, ...]:
    """Return the two figures that are weighed against each other: time and money, or the goal and money."""
    first, token = Figure.TIME_TO_FIRST_TOKEN_SECONDS, Figure.TIME_PER_OUTPUT_TOKEN_SECONDS
    pair = (first, Figure.COST_USD_PER_MILLION_TOKENS)
    if not plan.is_inference:
        pair = (Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.COST_USD)
    if goal in (*pair, token):
        return (token if goal == token else pair[0], pair[1])
    return (goal, pair[1])


def results_of(answer: SearchAnswer, question: Question, solved: tuple[str, ...] = ()) -> Results:
    """Return an answer as the screen shows it, the fields that were solved for in every case."""
    table = _Table(question, answer.top, solved)
    keys = table.figures(question)
    weighed = tuple(table.column_of(key, keys) for key in answer.compared if key in keys)
    return Results(
        columns=tuple(table.columns(keys)),
        rows=tuple(table.row(plan, keys) for plan in answer.top),
        evaluated=answer.evaluated,
        fitting=answer.fitting,
        seconds=answer.seconds,
        excluded=tuple(map(_excluded, answer.rejected)),
        missed=tuple(map(_excluded, answer.missed)),
        is_complete=answer.complete,
        share=answer.share_done,
        weighed=(weighed[0], weighed[1]) if len(weighed) > 1 else None,
        front=frozenset(answer.pareto),
    )


@dataclass(frozen=True)
class _Table:
    """The columns of an answer: what rows differ in, then their figures."""

    question: Question  # what was asked
    plans: Sequence[SearchResult]  # the rows
    solved: tuple[str, ...] = ()  # fields that have a column in every case

    def figures(self, question: Question) -> tuple[str, ...]:
        """Return the figures of the columns: the usual ones that are known, the goal's and those with limits."""
        known = {key for plan in self.plans for key in plan.figures}
        figures = (*(limit.figure for limit in question.limits), *([question.goal.figure] if question.goal else []))
        return tuple(dict.fromkeys((*column_figures(known), *(key for key in figures if key in known))))

    def columns(self, figures: Sequence[str]) -> Iterator[TableColumn]:
        for path in self._named:
            is_number = all(isinstance(one.set.get(path), int | float) for one in self.plans)
            yield TableColumn(_NAMED.get(path) or field_label(path).lower(), is_number=is_number)
        if self._has_layout:
            yield TableColumn("layout", is_number=False, rank=_LAYOUT_RANK)
        for path in self._others:
            is_number = all(isinstance(one.set.get(path), int | float) for one in self.plans)
            yield TableColumn(field_label(path).lower(), is_number=is_number, rank=_OTHERS_RANK)
        for key in figures:
            figure = FIGURES[key]
            yield TableColumn(column_head(key), figure.better, rank=figure.rank, unit=column_unit(key))

    def column_of(self, key: str, figures: Sequence[str]) -> int:
        return len(self._named) + self._has_layout + len(self._others) + tuple(figures).index(key)

    def row(self, plan: SearchResult, figures: Sequence[str]) -> ResultRow:
        cells = [_set_cell(plan.set.get(path)) for path in self._named]
        cells += [Cell(_layout(plan.set, self._devices(plan)))] if self._has_layout else []
        cells += [_set_cell(plan.set.get(path)) for path in self._others]
        cells += [figure_cell(key, plan.figures.get(key)) for key in figures]
        return ResultRow(dict(plan.set), plan.verdict, tuple(cells), tuple(_about(plan, figures)), plan.dominated_by)

    @property
    def _named(self) -> tuple[str, ...]:
        """Model, hardware and number of devices, where the question leaves them open."""
        query = self.question
        open_ones = ((_MODEL, query.models), (_HARDWARE, query.hardware), (_DEVICES, query.devices))
        named = (path for path, names in open_ones if names)
        return tuple(dict.fromkeys((*(path for path in self.solved if path in all_fields()), *named)))

    @property
    def _has_layout(self) -> bool:
        return any(path.startswith(_LAYOUT) for plan in self.plans for path in plan.set)

    @property
    def _others(self) -> tuple[str, ...]:
        paths = dict.fromkeys(path for plan in self.plans for path in plan.set)
        named = (*_NAMED, *self.solved)
        free = (path for path in paths if path not in named and not path.startswith(_LAYOUT))
        return tuple(path for path in free if len({str(plan.set.get(path)) for plan in self.plans}) > 1)

    def _devices(self, plan: SearchResult) -> int | None:
        count = plan.set.get(_DEVICES, self.question.plan.hardware.devices)
        return count if isinstance(count, int) else None


def _excluded(rejected: Rejected) -> Rejected:
    """Return what excluded something, figures by what stands over their column."""
    key, space, rest = rejected.rule.partition(" ")
    return replace(rejected, rule=f"{column_head(key)}{space}{rest}") if key in FIGURES else rejected


def _layout(change: Mapping[str, object], devices: int | None) -> str:
    """Return the sizes of a layout that are more than one, and how far it is sharded."""
    sizes = {name: change.get(_LAYOUT + name) for name in ("dp", *_SIZES)}
    counts = {name: size for name, size in sizes.items() if isinstance(size, int)}
    if devices is not None and "dp" not in counts:
        inside = counts.get("tp", 1) * counts.get("pp", 1) * counts.get("cp", 1)
        counts = {"dp": devices // max(inside, 1), **counts}
    words = [f"{name}{size}" for name, size in counts.items() if size > 1]
    stage = change.get(_LAYOUT + "zero")
    words += [f"zero{stage}"] if stage not in (None, 0) else []
    return " ".join(words) or "one device"


def _about(plan: SearchResult, figures: Sequence[str]) -> Iterator[str]:
    """Yield all that a row sets, then its figures with their ranges."""
    given = {path: value for path, value in plan.set.items() if not (path.startswith(_LAYOUT) and value == 1)}
    texts = ((field_label(path), plan_value_text(value)) for path, value in given.items())
    yield " · ".join(f"{label} {text}" for label, text in texts if text)
    ranges = ((key, plan.figures[key]) for key in figures if key in plan.figures)
    yield " · ".join(range_text(key, one) for key, one in ranges if one.low < one.high)
    if plan.price_source:
        yield f"price: {plan.price_source}"


def _set_cell(value: object) -> Cell:
    number = float(value) if isinstance(value, int | float) else None
    return Cell(plan_value_text(value) or "–", number)


_REPORT_SECONDS = 0.1


def solved(
    question: Question,
    solve: str,
    machine: Machine | None,
    catalog: Catalog,
    report: Callable[[Results], object],
    stopped: Callable[[], bool],
) -> Results:
    """Return the value of a field that keeps the limits as the first row, and what the next value breaks."""
    began = time.monotonic()
    counted, due = 0, began

    def count(_: Candidate, left: int) -> None:
        nonlocal counted, due
        counted, now = counted + 1, time.monotonic()
        if now >= due:
            due = now + _REPORT_SECONDS
            share = counted / (counted + left)
            report(Results((), (), counted, 0, now - began, is_complete=False, share=share))

    return _need_results(need(question, solve, machine, catalog, count, stopped), question, solved_path(solve))


def _need_results(needed: Needed, question: Question, path: str) -> Results:
    shown = [candidate for candidate in (needed.best or needed.nearest, needed.neighbour) if candidate is not None]
    plans = [plan for candidate in shown for plan in _plans(candidate)]
    answer = SearchAnswer(
        evaluated=needed.evaluated,
        fitting=int(needed.best is not None),
        seconds=needed.seconds,
        top=tuple(plans),
        complete=needed.complete,
        share_done=1.0,
    )
    results = results_of(
        answer, question, tuple(dict.fromkeys((path, *(name for candidate in shown for name in candidate.change))))
    )
    texts = tuple(part.text for part in needed_parts(needed, field_label) if isinstance(part, TextPart))
    rows = tuple(
        replace(row, about=texts if not place else texts[1:], verdict=_verdict(row, candidate))
        for place, (row, candidate) in enumerate(zip(results.rows, shown, strict=False))
    )
    return replace(results, rows=rows, remarks=texts, is_complete=needed.complete)


def _verdict(row: ResultRow, candidate: Candidate) -> Verdict:
    """Return the verdict on what was tried, held to the limits of the question too."""
    return row.verdict if candidate.holds or row.verdict.holds is False else Verdict.MISSES_LIMIT


def _plans(candidate: Candidate) -> Iterator[SearchResult]:
    """Yield what was tried as a search finds it; nothing where it cannot be estimated."""
    if candidate.filled is not None:
        yield SearchResult.of(candidate.change, candidate.filled.estimate)
