"""The engine's runs of a plan on other numbers of devices, in the words of the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from capacity_tui.engine.estimate import figure, limit_label
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import growth_remarks
from capacity_tui.engine.solve import EstimatedPlan, growing_runs, scaling_points
from capacity_tui.engine.units import format_number, format_percent, format_quantity
from capacity_tui.tui.screens.plan.answer_view import usage
from capacity_tui.tui.shown.columns import TableColumn
from capacity_tui.tui.shown.scaled import WAITS, WEAK, ScaledPlan, ScaledRow

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Estimate, Scaling
    from capacity_tui.engine.solve import ScaledRun

_TIMES = (Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.STEP_SECONDS)
_SERVED = (Figure.OUTPUT_TOKENS_PER_SECOND, Figure.STEP_SECONDS)
_COSTS = (Figure.COST_USD, Figure.COST_USD_PER_MILLION_TOKENS)
_HEADS: Mapping[str, str] = {
    Figure.ESTIMATED_TRAIN_TIME_SECONDS: "time",
    Figure.OUTPUT_TOKENS_PER_SECOND: "tok/s",
    Figure.COST_USD: "cost",
    Figure.COST_USD_PER_MILLION_TOKENS: "$/M",
}
_SIZES = ("dp", "tp", "pp", "cp", "ep")
_NOTHING = "–"


def scaled_plans(case: EstimatedPlan, growth: str) -> Iterator[ScaledPlan]:
    """Yield the plan on more and more devices: each time all that is known so far.

    Args:
        case: the plan as a mode fills it.
        growth: ``strong`` or ``weak``.
    """
    words = _Words(case, growth)
    runs: list[ScaledRun] = []
    for run in growing_runs(case, words.growth):
        runs.append(run)
        yield words.plan(runs)
    yield words.plan(runs, is_complete=True)


class _Words:
    """Says runs of one plan in words.

    Args:
        case: the plan.
        growth: whether the batch stays, or that of each device does.
    """

    def __init__(self, case: EstimatedPlan, growth: str) -> None:
        self.growth: Literal["strong", "weak"] = "weak" if growth == WEAK else "strong"
        self._case = case
        self._own = int(case.resolved.cluster.devices)
        served = case.plan.task == "infer"
        self._time = _known(case.estimate, _SERVED if served else _TIMES)
        self._cost = _known(case.estimate, _COSTS)
        self._has_layout = case.resolved.shape is not None

    def plan(self, runs: Sequence[ScaledRun], *, is_complete: bool = False) -> ScaledPlan:
        """Return what is known so far."""
        points = scaling_points(runs, self.growth)
        remarks = growth_remarks(points, is_complete=is_complete)
        knee = remarks.knee
        rows = tuple(self._row(run, point, knee) for run, point in zip(runs, points, strict=True))
        return ScaledPlan(self.growth, tuple(self._columns()), rows, remarks.lines, is_complete)

    def _columns(self) -> Iterator[TableColumn]:
        yield TableColumn("devices")
        yield TableColumn(_HEADS.get(self._time, self._case.estimate.computation.iteration))
        yield TableColumn("speed-up", rank=4)
        yield TableColumn("efficiency")
        yield TableColumn(WAITS, rank=2)
        yield TableColumn(_HEADS[self._cost])
        yield TableColumn("$/h saved", rank=1)
        yield TableColumn("memory", rank=3)
        yield TableColumn("batch", rank=6)
        if self._has_layout:
            yield TableColumn("layout", rank=5, is_number=False)
        yield TableColumn("limit", rank=7, is_number=False)

    def _row(self, run: ScaledRun, point: Scaling, knee: int | None) -> ScaledRow:
        estimate, plan = run.candidate.estimate, run.candidate.made.plan
        holds = point.fits is not False
        held = usage(estimate)
        cells = (
            format_number(point.devices),
            _text(estimate, self._time),
            f"{format_number(point.speedup, 1)} ×" if holds else _NOTHING,
            format_percent(point.efficiency) if holds else _NOTHING,
            format_percent(point.communication_share),
            _text(estimate, self._cost),
            _saved(point),
            _NOTHING if held.share is None else format_percent(held.share),
            format_number(point.batch),
            *((_layout(plan, self._case.plan),) if self._has_layout else ()),
            limit_label(point.limited_by),
        )
        return ScaledRow(
            devices=point.devices,
            change={} if run.devices == self._own else run.change,
            verdict=estimate.verdict,
            cells=cells,
            efficiency=point.efficiency if holds else None,
            waits=point.communication_share,
            is_own=run.devices == self._own,
            is_knee=point.devices == knee,
            is_bound=point.limited_by == "network",
        )


def _known(estimate: Estimate, keys: Sequence[str]) -> str:
    """Return the first key of a figure that an estimate has, the first of all where it has none."""
    return next((key for key in keys if figure(estimate, key).number is not None), keys[0])


def _text(estimate: Estimate, key: str) -> str:
    found = figure(estimate, key)
    return _NOTHING if found.number is None else found.text


def _saved(point: Scaling) -> str:
    usd = point.usd_per_hour_saved
    if usd is None:
        return _NOTHING
    return "cheaper" if usd <= 0 else format_quantity(usd, "USD")


def _layout(plan: Plan, own: Plan) -> str:
    """Return the sizes of a layout, and the micro-batch where it is another than the plan's own."""
    sizes = ((name, getattr(plan.parallelism, name)) for name in _SIZES)
    layout = " ".join(f"{name}{size}" for name, size in sizes if size not in (None, 1)) or "one device"
    micro_batch = plan.training.micro_batch
    is_other = plan.task != "infer" and micro_batch != own.training.micro_batch
    return f"{layout}, micro {micro_batch}" if is_other else layout
