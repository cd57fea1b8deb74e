"""One mode's estimate as a column of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.cautions import mode_warnings
from capacity_tui.engine.choose.filled import ModePlan
from capacity_tui.engine.estimate.explain import interval_text
from capacity_tui.engine.estimate.figures import Figure, central, figure
from capacity_tui.engine.estimate.result import Estimate, Interval
from capacity_tui.engine.estimate.result import Note as EngineNote
from capacity_tui.engine.hardware.cluster import Cluster
from capacity_tui.engine.units import (
    format_bytes,
    format_count,
    format_energy,
    format_money,
    format_percent,
    format_power,
    format_seconds,
)
from capacity_tui.engine.workload.families import family_of
from capacity_tui.engine.workload.fields import plan_fields
from capacity_tui.engine.workload.known_models import find_known_model
from capacity_tui.engine.workload.plan import Plan
from capacity_tui.tui.field_view import value_text
from capacity_tui.tui.model_edit import SPEC
from capacity_tui.tui.view import Chosen, Column, Note, Row

_NO_CENTS_FROM = 1000
_LESS, _MORE, _NEITHER = -1, 1, 0
_JOB = "computation.estimated_train_time_seconds"
_IMAGES = {"image_size", "image_h"}
"""Parameters that tell networks over images from others."""
_LIMITS = {"memory_bandwidth": "memory speed", "capacity": "memory size"}


def column(filled: ModePlan, catalog: Catalog, cluster: Cluster) -> Column:
    """Return what one mode makes of a plan.

    Args:
        filled: the plan as the mode fills it.
        catalog: facts.
        cluster: what it runs on.
    """
    estimate = filled.estimate
    warnings = (*estimate.warnings, *mode_warnings(filled.mode, estimate, cluster))
    return Column(
        mode=filled.mode.id,
        verdict=estimate.verdict,
        reason=estimate.shortage,
        rows=tuple(_rows(filled.plan, estimate)),
        chosen=_chosen(filled, catalog),
        notes=tuple(_note(note) for note in (*warnings, *estimate.recommendations)),
    )


def warning_lines(estimate: Estimate) -> tuple[str, ...]:
    """Return what to know before relying on an estimate, one sentence or two each."""
    return tuple(f"{note.title}: {note.detail}" for note in estimate.warnings)


def _rows(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    yield from _memory_rows(estimate)
    yield from _setting_rows(plan, estimate)
    yield from _time_rows(plan, estimate)
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


def _setting_rows(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    """What the modes decide, whether they did or the plan said so."""
    parallel, training = plan.parallelism, plan.training
    if plan.task == "infer":
        yield Row("inference.batch", "batch", value_text(plan.inference.batch))
        yield Row("inference.weights", "weights as", value_text(plan.inference.weights))
        return
    if plan.task == "fit":
        for name, label in (("n_jobs", "cores"), ("precision", "precision")):
            if plan.model.spec.get(name) is not None:
                yield Row(f"model.spec.{name}", label, value_text(plan.model.spec[name]))
        return
    replicas = int(parallel.dp or 1)
    accumulation = int(training.global_batch or 1) / (int(training.micro_batch) * replicas)
    if estimate.computation.unit == "token":
        yield Row("training.seq_len", "sequence", value_text(training.seq_len))
    yield Row("training.micro_batch", "micro × accum", f"{training.micro_batch} × {accumulation:g}")
    yield Row("training.checkpointing", "checkpointing", training.checkpointing)
    if replicas * int(parallel.tp) * int(parallel.pp) * int(parallel.cp) == 1:
        return
    yield Row("parallelism.dp", "dp × tp × pp", f"{parallel.dp} × {parallel.tp} × {parallel.pp}")
    yield Row("parallelism.zero", "ZeRO", value_text(parallel.zero))


def _time_rows(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    infer = estimate.computation.infer
    if infer is not None:
        prefix = "computation.infer."
        yield _figure_row(estimate, f"{prefix}prefill_tokens_per_second", "prompt tok/s", format_count, _MORE)
        yield _figure_row(
            estimate, f"{prefix}decode_tokens_per_second", "output tok/s", format_count, _MORE, missing="no output"
        )
        yield _figure_row(estimate, f"{prefix}time_to_first_token_seconds", "first token", format_seconds, _LESS)
        return
    if plan.task == "fit":
        yield _figure_row(estimate, _JOB, "fit time", format_seconds, _LESS)
    yield _figure_row(estimate, "computation.tokens_per_second", f"{_counted(plan, estimate)}/s", format_count, _MORE)
    yield _figure_row(estimate, "computation.mfu", "MFU", lambda value: format_percent(value, 1), _MORE, indent=1)
    if plan.task == "fit":
        return
    step = "batch time" if plan.task == "infer" else "step"
    yield _figure_row(estimate, "computation.step_seconds", step, format_seconds, _LESS)
    if plan.task != "infer":
        yield _figure_row(estimate, _JOB, "time", format_seconds, _LESS, missing="length is open")


def _counted(plan: Plan, estimate: Estimate) -> str:
    """Return what a step works through, in the word of the kind of model."""
    if estimate.computation.unit == "token":
        return "tokens"
    if plan.task == "fit":
        return "rows"
    return "images" if plan.model.spec.keys() & _IMAGES else "samples"


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


def _chosen(filled: ModePlan, catalog: Catalog) -> dict[str, Chosen]:
    """Return every field of the filled plan, with the reason where the mode chose it."""
    name = filled.plan.model.name
    known = find_known_model(name, catalog) if name else None
    sizes = {} if known is None else {f"{SPEC}{parameter}": size for parameter, size in known.sizes.items()}
    chosen = {}
    for entry in plan_fields(filled.plan, family_of(name, catalog).kind):
        value = sizes.get(entry.path) if entry.value is None else entry.value
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        number = float(str(value)) if is_number else None
        chosen[entry.path] = Chosen(value_text(value), filled.reasons.get(entry.path, ""), number)
    return chosen


def _note(note: EngineNote) -> Note:
    saved = (note.saves or {}).get("memory.reserved_bytes")
    return Note(note.title, note.detail, f"saves {format_bytes(-saved)}" if saved and saved < 0 else "")
