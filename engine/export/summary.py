"""What an answer says, as lines of text: the one content of tables and reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capacity_tui.engine.estimate.result import Estimate, Interval, Note
from capacity_tui.engine.export.results import train_time
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import (
    format_bytes,
    format_count,
    format_energy,
    format_flops,
    format_money,
    format_number,
    format_percent,
    format_power,
    format_rate,
    format_seconds,
)
from capacity_tui.engine.workload.plan import Plan

_BOTTLENECK_WORDS = {
    "compute": "compute",
    "memory_bandwidth": "memory bandwidth",
    "network": "network",
    "capacity": "memory capacity",
    "input": "input",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        label: what it is; parts of the figure above begin with two spaces.
        value: the figure with its unit.
        spread: its range, empty where there is none.
    """

    label: str
    value: str
    spread: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Figures under one heading."""

    title: str
    rows: tuple[Row, ...]


def headline(plan: Plan, estimate: Estimate) -> str:
    """Return the plan in a few words: ``llama-3-8b, train, 64 x h100-sxm-80gb``."""
    name = plan.model.name or plan.model.config or "model"
    devices = format_number(float(estimate.computation.devices))
    return f"{name}, {plan.task or 'train'}, {devices} x {plan.hardware.name}"


def verdict(estimate: Estimate) -> str:
    """Return whether the plan fits, in words, and what is short where it does not."""
    shortage = estimate.shortage
    return f"{estimate.verdict.words}: {shortage}" if shortage else estimate.verdict.words


def blocks(plan: Plan, estimate: Estimate) -> tuple[Block, ...]:
    """Return the figures of an answer, those that are none left out."""
    found = (
        Block("Model", tuple(_model(estimate))),
        Block("Memory per device", tuple(_memory(plan, estimate))),
        Block("Time", tuple(_time(plan, estimate))),
        Block("Cost and energy", tuple(_cost(estimate))),
    )
    return tuple(block for block in found if block.rows)


def notes(plan: Plan, estimate: Estimate) -> tuple[tuple[str, tuple[Note, ...]], ...]:
    """Return warnings and, if the plan's report wants them, recommendations; each under its heading."""
    wanted = plan.report.include_recommendations
    found = (
        ("Warnings", estimate.warnings),
        ("Recommendations", estimate.recommendations if wanted else ()),
    )
    return tuple((title, entries) for title, entries in found if entries)


def note_text(note: Note) -> str:
    """Return a note as one sentence or two."""
    return f"{note.title}: {note.detail}" if note.detail else note.title


def basis(estimate: Estimate) -> str:
    """Return where the numbers come from, as one line."""
    found = estimate.basis
    parts = [found.method, found.calibration]
    if found.catalogue_date:
        parts.append(f"catalogue of {found.catalogue_date}")
    if found.assumed:
        parts.append(f"assumed: {', '.join(found.assumed)}")
    return "; ".join(part for part in parts if part)


def _model(estimate: Estimate) -> Iterator[Row]:
    model = estimate.model
    yield Row("parameters", _count(model.parameters))
    if float(model.active_parameters) != float(model.parameters):
        yield Row(f"  active for one {model.unit}", _count(model.active_parameters))
    yield Row(f"forward pass, one {model.unit}", format_flops(float(model.forward_flops)))
    if model.complexity:
        yield Row("complexity", "", model.complexity)


def _memory(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    memory = estimate.memory
    capacity = memory.capacity_bytes
    yield _spread("peak", memory.per_device_bytes)
    yield _spread("reserved, as the driver shows", memory.reserved_bytes)
    if plan.report.detailed_breakdown:
        for part, value in memory.parts.items():
            if value:
                yield Row(f"  {_words(part)}", format_bytes(float(value)))
    yield Row("capacity", format_bytes(None if capacity is None else float(capacity)))
    if capacity:
        yield Row("used", format_percent(float(memory.reserved_bytes.value / capacity)))
    if memory.host_bytes:
        yield Row("host memory", format_bytes(float(memory.host_bytes)))


def _time(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    computation = estimate.computation
    infer = computation.infer
    step = "batch" if plan.task == "infer" else "fit" if plan.task == "fit" else "step"
    yield Row(step, format_seconds(float(computation.step_seconds.value)), _seconds(computation.step_seconds))
    if plan.report.detailed_breakdown:
        for part, value in computation.parts.items():
            if value:
                yield Row(f"  {_words(part)}", format_seconds(float(value)))
    rate = float(computation.units_per_step / computation.step_seconds.value)
    unit = "tok/s" if computation.unit == "token" else "samples/s"
    yield Row("throughput", format_rate(rate, unit))
    if float(computation.devices) > 1:
        yield Row("  per device", format_rate(rate / float(computation.devices), unit))
    if infer is not None:
        yield _rates("reading the prompt", infer.prefill_tokens_per_second)
        writing = infer.decode_tokens_per_second
        yield Row("writing", "n/a (the model generates no tokens)") if writing is None else _rates("writing", writing)
        first = infer.time_to_first_token_seconds
        yield Row("time to first token", format_seconds(float(first.value)), _seconds(first))
    if computation.mfu is not None:
        yield Row("model FLOPs utilization", format_percent(float(computation.mfu), 1))
    total = train_time(computation)
    if total is not None:
        yield Row("whole job", format_seconds(float(total.value)), _seconds(total))
    yield Row("limited by", _BOTTLENECK_WORDS[estimate.bottleneck.kind], estimate.bottleneck.detail)


def _cost(estimate: Estimate) -> Iterator[Row]:
    cost, energy = estimate.cost, estimate.energy
    of = ", an hour" if estimate.computation.steps is None else ""
    if cost.usd is not None:
        yield Row(f"on demand{of}", format_money(float(cost.usd)), cost.source)
    if cost.usd_spot is not None:
        yield Row(f"spot{of}", format_money(float(cost.usd_spot)))
    if cost.usd_per_million_tokens is not None:
        yield Row(f"per million {estimate.model.unit}s", format_money(float(cost.usd_per_million_tokens), 3))
    if energy.kwh is not None:
        yield Row("energy", format_energy(float(energy.kwh)))
    if energy.watts_average is not None:
        yield Row("mean power", format_power(float(energy.watts_average)))
    if energy.usd is not None:
        yield Row("electricity", format_money(float(energy.usd)))


def _spread(label: str, interval: Interval) -> Row:
    low, high = format_bytes(float(interval.low)), format_bytes(float(interval.high))
    return Row(label, format_bytes(float(interval.value)), f"{low} to {high}")


def _rates(label: str, interval: Interval) -> Row:
    low, high = format_rate(float(interval.low)), format_rate(float(interval.high))
    return Row(label, format_rate(float(interval.value)), f"{low} to {high}")


def _seconds(interval: Interval) -> str:
    return f"{format_seconds(float(interval.low))} to {format_seconds(float(interval.high))}"


def _count(value: Number) -> str:
    return format_count(float(value), decimals=2)


def _words(part: str) -> str:
    return part.replace("_", " ")
