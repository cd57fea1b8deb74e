"""One mode's estimate as a column of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from capacity_tui.engine.choose.filled import ModePlan
from capacity_tui.engine.estimate.explain import interval_text
from capacity_tui.engine.estimate.figures import Figure, central, figure
from capacity_tui.engine.estimate.result import Estimate, Interval
from capacity_tui.engine.estimate.result import Note as EngineNote
from capacity_tui.engine.units import (
    format_bytes,
    format_count,
    format_energy,
    format_money,
    format_percent,
    format_power,
    format_seconds,
)
from capacity_tui.engine.workload.fields import plan_fields
from capacity_tui.engine.workload.plan import Plan
from capacity_tui.tui.field_view import value_text
from capacity_tui.tui.view import Chosen, Column, Note, Row, Verdict

_NO_CENTS_FROM = 1000
_LESS, _MORE, _NEITHER = -1, 1, 0
_LIMITS = {"memory_bandwidth": "memory speed", "capacity": "memory size"}


def column(mode: str, filled: ModePlan) -> Column:
    """Return what one mode makes of a plan."""
    estimate = filled.estimate
    return Column(
        mode=mode,
        verdict=_verdict(estimate),
        reason=_shortage(estimate),
        rows=tuple(_rows(filled.plan, estimate)),
        chosen=_chosen(filled),
        notes=tuple(_note(note) for note in (*estimate.warnings, *estimate.recommendations)),
    )


def _verdict(estimate: Estimate) -> Verdict:
    """A plan is tight when it fits, but not at the upper end of its interval."""
    if estimate.fits is None:
        return Verdict.UNKNOWN
    if not estimate.fits:
        return Verdict.OVER
    capacity = estimate.memory.capacity_bytes
    return Verdict.TIGHT if float(estimate.memory.reserved_bytes.high) > float(capacity or 0) else Verdict.FITS


def _shortage(estimate: Estimate) -> str:
    capacity = estimate.memory.capacity_bytes
    if estimate.fits or capacity is None:
        return ""
    needed, there = format_bytes(float(estimate.memory.reserved_bytes.value)), format_bytes(float(capacity))
    return f"needs {needed}, a device has {there}"


def _rows(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    yield from _memory_rows(estimate)
    yield from _setting_rows(plan)
    yield from _time_rows(estimate)
    yield from _money_rows(estimate)
    kind = estimate.bottleneck.kind
    yield Row("bottleneck.arithmetic_intensity", "first limit", _LIMITS.get(kind, kind))


def _memory_rows(estimate: Estimate) -> Iterator[Row]:
    yield _figure_row(estimate, "memory.reserved_bytes", "memory/device", format_bytes, _LESS)
    used = _figure_row(estimate, "memory.utilization_percent", "utilization", _percent, indent=1)
    # Without its value no delta is shown: the row above has the same one.
    yield replace(used, value=None)
    for part, size in estimate.memory.parts.items():
        if float(size) > 0:
            yield _figure_row(estimate, f"memory.parts.{part}", part.replace("_", " "), format_bytes, _LESS, indent=1)


def _setting_rows(plan: Plan) -> Iterator[Row]:
    """What the modes decide, whether they did or the plan said so."""
    parallel, training = plan.parallelism, plan.training
    if plan.task == "infer":
        yield Row("inference.batch", "batch", value_text(plan.inference.batch))
        yield Row("inference.weights", "weights as", value_text(plan.inference.weights))
        return
    if plan.task == "fit":
        return
    replicas = int(parallel.dp or 1)
    accumulation = int(training.global_batch or 1) / (int(training.micro_batch) * replicas)
    yield Row("training.micro_batch", "micro × accum", f"{training.micro_batch} × {accumulation:g}")
    yield Row("training.checkpointing", "checkpointing", training.checkpointing)
    if replicas * int(parallel.tp) * int(parallel.pp) * int(parallel.cp) == 1:
        return
    yield Row("parallelism.dp", "dp × tp × pp", f"{parallel.dp} × {parallel.tp} × {parallel.pp}")
    yield Row("parallelism.zero", "ZeRO", value_text(parallel.zero))


def _time_rows(estimate: Estimate) -> Iterator[Row]:
    infer, unit = estimate.computation.infer, estimate.computation.unit
    if infer is not None:
        prefix = "computation.infer."
        yield _figure_row(estimate, f"{prefix}prefill_tokens_per_second", "prompt tok/s", format_count, _MORE)
        yield _figure_row(estimate, f"{prefix}decode_tokens_per_second", "output tok/s", format_count, _MORE)
        yield _figure_row(estimate, f"{prefix}time_to_first_token_seconds", "first token", format_seconds, _LESS)
        return
    name = "tokens/s" if unit == "token" else "samples/s"
    yield _figure_row(estimate, "computation.tokens_per_second", name, format_count, _MORE)
    yield _figure_row(estimate, "computation.mfu", "MFU", lambda value: format_percent(value, 1), _MORE, indent=1)
    yield _figure_row(estimate, "computation.step_seconds", "step", format_seconds, _LESS)
    yield _figure_row(estimate, "computation.estimated_train_time_seconds", "time", format_seconds, _LESS)


def _money_rows(estimate: Estimate) -> Iterator[Row]:
    yield _figure_row(estimate, "cost.usd", "cost", _money, _LESS, missing="no price known")
    yield _figure_row(estimate, "energy.kwh", "energy", format_energy, _LESS, missing="length is open")
    if estimate.energy.kwh is None:
        yield _figure_row(estimate, "energy.watts_average", "mean power", format_power, _NEITHER)


def _figure_row(
    estimate: Estimate,
    key: str,
    label: str,
    write: Callable[[float], str],
    better: int = _NEITHER,
    *,
    indent: int = 0,
    missing: str = "unknown",
) -> Row:
    found = figure(estimate, key)[2]
    value = central(found)
    if value is None:
        return Row(key, label, f"n/a ({missing})", indent=indent, better=better)
    low, high = _ends(found)
    number = float(value)
    return Row(key, label, write(number), number, low, high, interval_text(found), better, indent)


def _ends(found: Figure) -> tuple[float | None, float | None]:
    return (float(found.low), float(found.high)) if isinstance(found, Interval) else (None, None)


def _money(usd: float) -> str:
    return format_money(usd, 0 if usd >= _NO_CENTS_FROM else 2)


def _percent(percent: float) -> str:
    return format_percent(percent / 100)


def _chosen(filled: ModePlan) -> dict[str, Chosen]:
    """Return every field of the filled plan, with the reason where the mode chose it."""
    chosen = {}
    for entry in plan_fields(filled.plan):
        if entry.value is None:
            continue
        is_number = isinstance(entry.value, int | float) and not isinstance(entry.value, bool)
        number = float(str(entry.value)) if is_number else None
        chosen[entry.path] = Chosen(value_text(entry.value), filled.reasons.get(entry.path, ""), number)
    return chosen


def _note(note: EngineNote) -> Note:
    saved = (note.saves or {}).get("memory.reserved_bytes")
    return Note(note.title, note.detail, f"saves {format_bytes(-saved)}" if saved and saved < 0 else "")
