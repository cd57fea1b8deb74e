"""A plan over device counts, what it stores, and what the patterns of its corpus take, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, SupportsFloat

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import roomiest_disk
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer, Estimate, Scaling, figure, limit_label
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import calendar_text, growth_remarks
from capacity_tui.engine.present.storage import disk_bytes, growth_rows, pattern_remarks
from capacity_tui.engine.solve import EstimatedPlan, ScaledRun, growing_runs, scaling_points
from capacity_tui.engine.storage import (
    PatternLevel,
    PatternQuestion,
    PatternStorage,
    StoragePlan,
    pattern_storage,
    storage_plan,
)
from capacity_tui.engine.storage import growth as pattern_growth
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_quantity,
    format_seconds,
)
from capacity_tui.tui.shown.comparison import Row
from capacity_tui.tui.shown.results import TableColumn
from capacity_tui.tui.shown.scale import (
    WAITS,
    WEAK,
    LogChart,
    LogCurve,
    LogLimit,
    ScaledPlan,
    ScaledRow,
    StoredLevel,
    StoredPatterns,
)
from capacity_tui.tui.views.plan.field_values import usage

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
    """Yield the plan on more and more devices, by ``strong`` or ``weak`` growth: each time all that is known so far."""
    words = _Words(case, growth)
    runs: list[ScaledRun] = []
    for run in growing_runs(case, words.growth):
        runs.append(run)
        yield words.plan(runs)
    yield words.plan(runs, is_complete=True)


class _Words:
    """Says runs of one plan in words."""

    def __init__(self, case: EstimatedPlan, growth: str) -> None:
        self.growth: Literal["strong", "weak"] = "weak" if growth == WEAK else "strong"
        self._case = case
        self._devices = int(case.resolved.cluster.devices)
        served = case.plan.is_inference
        self._time = _known(case.estimate, _SERVED if served else _TIMES)
        self._cost = _known(case.estimate, _COSTS)
        self._has_layout = case.resolved.shape is not None
        self._has_failures = self._time == Figure.ESTIMATED_TRAIN_TIME_SECONDS

    def plan(self, runs: Sequence[ScaledRun], *, is_complete: bool = False) -> ScaledPlan:
        points = scaling_points(runs, self.growth)
        remarks = growth_remarks(points, is_complete=is_complete)
        knee = remarks.knee
        rows = tuple(self._row(run, point, knee) for run, point in zip(runs, points, strict=True))
        failing = calendar_text(self._case.estimate)
        lines = (*((f"{failing}.",) if failing else ()), *remarks.lines)
        columns = tuple(column for column, _ in self._cells(runs[0], points[0])) if runs else ()
        return ScaledPlan(self.growth, columns, rows, lines, is_complete)

    def _cells(self, run: ScaledRun, point: Scaling) -> Iterator[tuple[TableColumn, str]]:
        estimate, held = run.candidate.estimate, usage(run.candidate.estimate)
        holds = point.fits is not False
        pace = _HEADS.get(self._time, self._case.estimate.computation.iteration)
        yield TableColumn("devices"), format_number(point.devices)
        yield TableColumn(pace), _text(estimate, self._time)
        yield TableColumn("speed-up", rank=4), f"{format_number(point.speedup, 1)} ×" if holds else _NOTHING
        yield TableColumn("efficiency"), format_percent(point.efficiency) if holds else _NOTHING
        yield TableColumn(WAITS, rank=2), format_percent(point.communication_share)
        yield TableColumn(_HEADS[self._cost]), _text(estimate, self._cost)
        yield TableColumn("$/h saved", rank=1), _saved(point)
        yield TableColumn("memory", rank=3), _NOTHING if held.share is None else format_percent(held.share)
        if self._has_failures:
            yield TableColumn("calendar", rank=5), _text(estimate, Figure.RELIABILITY_CALENDAR_SECONDS)
            yield TableColumn("failures", rank=6), _text(estimate, Figure.RELIABILITY_FAILURES)
        yield TableColumn("batch", rank=8), format_number(point.batch)
        if self._has_layout:
            yield TableColumn("layout", rank=7, is_number=False), _layout(run.candidate.made.plan, self._case.plan)
        yield TableColumn("limit", rank=9, is_number=False), limit_label(point.limited_by)

    def _row(self, run: ScaledRun, point: Scaling, knee: int | None) -> ScaledRow:
        estimate = run.candidate.estimate
        return ScaledRow(
            devices=point.devices,
            change={} if run.devices == self._devices else run.change,
            verdict=estimate.verdict,
            cells=tuple(text for _, text in self._cells(run, point)),
            efficiency=None if point.fits is False else point.efficiency,
            waits=point.communication_share,
            is_own=run.devices == self._devices,
            is_knee=point.devices == knee,
            is_bound=point.limited_by == "network",
            pace=figure(estimate, self._time).number,
            usd=figure(estimate, self._cost).number,
            price_source=point.price_source,
        )


def _known(estimate: Estimate, keys: Sequence[str]) -> str:
    """Return the first key of a figure that an estimate has, the first of all where it has none."""
    return next((key for key in keys if figure(estimate, key).number is not None), keys[0])


def _text(estimate: Estimate, key: str) -> str:
    stored = figure(estimate, key)
    return _NOTHING if stored.number is None else stored.text


def _saved(point: Scaling) -> str:
    usd = point.usd_per_hour_saved
    if usd is None:
        return _NOTHING
    return "cheaper" if usd <= 0 else format_quantity(usd, "USD")


def _layout(plan: Plan, nearest: Plan) -> str:
    """Return the sizes of a layout, and the micro-batch where it is another than the plan's own."""
    sizes = ((name, getattr(plan.parallelism, name)) for name in _SIZES)
    layout = " ".join(f"{name}{size}" for name, size in sizes if size not in (None, 1)) or "one device"
    micro_batch = plan.training.micro_batch
    is_other = not plan.is_inference and micro_batch != nearest.training.micro_batch
    return f"{layout}, micro {micro_batch}" if is_other else layout


_OPEN = "n/a (the job's length is open)"


def stored_rows(machine: Machine | None, stored: Answer, catalog: Catalog) -> tuple[Row, ...]:
    """Return what an estimated plan keeps and moves on a machine; nothing where it reads and saves nothing."""
    try:
        return tuple(_rows(storage_plan(stored, machine, catalog)))
    except PlanError:
        return ()


def _rows(stored: StoragePlan) -> Iterator[Row]:
    yield from _data(stored)
    yield from _checkpoints(stored)
    yield from _room(stored)


def _data(stored: StoragePlan) -> Iterator[Row]:
    supply, arrival = stored.supply, stored.arrival
    size = _OPEN if supply.bytes is None else format_bytes(float(supply.bytes))
    many = "" if supply.units is None else f"{format_count(float(supply.units))} {stored.content.holds}"
    yield Row("data", "Data set", size, interval=many, help=f"The data of the job as {supply.format.name}.")
    nearest = stored.sources[0]
    yield Row(
        "read", "read", format_bandwidth(nearest.needed), indent=1, help="What a node reads of them while it works."
    )
    for source in stored.sources:
        place = source.tier.place or source.tier.id
        yield Row(
            *(f"read.{place}", place if source is nearest else f"or {place}", format_bandwidth(source.bandwidth)),
            share=source.needed / source.bandwidth,
            interval="" if source.is_enough else "too slow",
            indent=2,
            help=f"What a node could read from there ({source.tier.name}), and how much of that it takes.",
        )
    waits = format_seconds(arrival.waiting_seconds) if arrival.waiting_seconds else "never"
    arriving = format_seconds(max(arrival.reading_seconds, arrival.decoding_seconds))
    yield Row(
        *("waits", "a step waits", waits),
        interval=f"{arrival.slower} {arriving}",
        indent=1,
        help="How long the devices wait for the data of a step: reading or decoding that takes longer than their own "
        f"work on it, {format_seconds(arrival.working_seconds)}.",
    )


def _checkpoints(stored: StoragePlan) -> Iterator[Row]:
    saved = stored.checkpoints
    yield Row(
        *("checkpoint", "Checkpoint", format_bytes(saved.bytes)),
        interval=f"×{saved.kept} = {format_bytes(saved.kept_bytes)}",
        help="Trained weights, their full-precision copy and the optimizer's states; this many are kept at once.",
    )
    yield Row(
        *("saving", "saved every", format_seconds(saved.interval_seconds)),
        interval=f"in {format_seconds(saved.save_seconds)}, {saved.tier.name}",
        indent=1,
        help=f"{format_seconds(saved.best_interval_seconds)} between two checkpoints lose least, with an interruption "
        f"of the job every {format_seconds(saved.failure_seconds)}.",
    )
    yield Row(
        *("stall", "stall", format_percent(saved.stall_share, 2)),
        interval=f"{format_percent(saved.lost_share, 2)} incl. lost work",
        indent=1,
        help="Share of the time in which training waits for checkpoints; and the share with lost work.",
    )


def _room(stored: StoragePlan) -> Iterator[Row]:
    host, memory = stored.answer.resolved.cluster.host, stored.memory
    needed, free = disk_bytes(stored), host.disk_free_bytes
    yield Row(
        *("disk", "Disk", format_bytes(needed)),
        share=needed / free if free else None,
        interval=_of(needed, free, " free"),
        help="Data as stored on a node's disk, and all checkpoints kept at once.",
    )
    yield Row(
        *("memory", "Host memory", format_bytes(memory.total)),
        share=memory.total / memory.capacity if memory.capacity else None,
        interval=_of(memory.total, memory.capacity),
        help="Main memory of a node: workers that load data, batches they keep ready, caches, what is offloaded.",
    )


def _of(needed: float, room: float | None, what: str = "") -> str:
    """Return what there is room for, and whether that is too little; nothing where it is unknown."""
    return f"of {format_bytes(room)}{what}{': too little' if needed > room else ''}" if room else ""


_PATTERN_COLUMNS = (
    TableColumn("level", is_number=False),
    TableColumn("holds", rank=3, is_number=False),
    TableColumn("patterns", rank=4),
    TableColumn("repeated", rank=1),
    TableColumn("unique"),
    TableColumn("by the law", rank=2),
    TableColumn("size"),
    TableColumn("range", rank=5),
)
_DISK = "The disk"
_RANKS = 40  # Points of a curve of frequencies


def stored_patterns(question: PatternQuestion, machine: Machine | None, catalog: Catalog) -> StoredPatterns:
    """Return what the patterns of a corpus take to keep, and how far disk and memory of the machine, if any, reach."""
    stored, grown = pattern_storage(question, catalog), pattern_growth(question, catalog)
    total = float(stored.total_bytes.value)
    room = dict(_pattern_room(machine))
    reach = {label: float(question.samples) * size / total for label, (size, _) in room.items()}
    levels = tuple(_level(level, total) for level in stored.levels)
    return StoredPatterns(
        _PATTERN_COLUMNS,
        (*levels, _everything(stored, levels[0])),
        _growth_chart(stored, grown, tuple(LogLimit(size, text) for size, text in room.values())),
        (
            *(f"{label} is full at {_count(samples)} samples." for label, samples in reach.items()),
            *(f"{remark[0].upper()}{remark[1:]}." for remark in pattern_remarks(stored)),
        ),
        reach.get(_DISK),
    )


def _pattern_room(machine: Machine | None) -> Iterator[tuple[str, tuple[float, str]]]:
    """Yield the places where patterns may be kept: bytes, and how a picture names them."""
    if machine is None:
        return
    disk, memory = roomiest_disk(machine), machine.memory.total_bytes.value
    if disk is not None and disk.free_bytes.value:
        free = float(disk.free_bytes.value)
        yield _DISK, (free, f"disk {_size(free)} free")
    if memory:
        yield "The memory", (float(memory), f"memory {_size(memory)}")


def _level(level: PatternLevel, total: float) -> StoredLevel:
    size = level.bytes
    cells = (
        level.name,
        level.holds,
        _count(level.samples),
        format_percent(level.deduplication, 1).replace(".0 ", " "),
        _count(level.unique.value),
        _count(level.expected),
        _size(size.value),
        f"{_size(size.low)} – {_size(size.high)}",
    )
    size_of_one = format_bytes(float(level.pattern_bytes), "B")
    about = (
        f"Of {cells[2]} patterns at this level the rule keeps {cells[4]} different ones; by the law {cells[5]} of "
        f"{_count(level.kinds)} kinds are expected. One takes {size_of_one} as a document."
    )
    return StoredLevel(f"{level.name}, {level.holds}", cells, float(size.value) / total, about, _frequencies(level))


def _everything(stored: PatternStorage, first: StoredLevel) -> StoredLevel:
    size = stored.total_bytes
    cells = (
        *("all", "", "", ""),
        _count(stored.unique),
        _count(stored.expected),
        _size(size.value),
        f"{_size(size.low)} – {_size(size.high)}",
    )
    about = f"All levels, with what the store adds; the documents alone take {_size(stored.raw_bytes)}."
    return StoredLevel("all levels", cells, 1.0, about, first.frequencies, is_total=True)


def _frequencies(level: PatternLevel) -> LogChart:
    kinds = max(float(level.kinds), 1.0)
    ranks = sorted({kinds ** (step / (_RANKS - 1)) for step in range(_RANKS)})
    points = tuple((rank, float(level.frequency(rank))) for rank in ranks)
    return LogChart(f"occurrences over rank, {level.name} {level.holds}", (LogCurve(points),))


def _growth_chart(stored: PatternStorage, grown: PatternStorage, room: tuple[LogLimit, ...]) -> LogChart:
    rows = growth_rows(grown)
    curves = tuple(
        LogCurve(tuple((row["samples"], row[key]) for row in rows), key != "total_bytes")
        for key in ("low", "high", "total_bytes")
    )
    here = float(stored.question.samples), float(stored.total_bytes.value)
    return LogChart("size over samples", curves, room, here, "B")


def _count(value: SupportsFloat) -> str:
    return format_count(float(value), decimals=2)


def _size(value: SupportsFloat) -> str:
    return format_bytes(float(value), "GB")
