"""What an answer says, as lines of text: the one content of tables and reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from capacity_tui.engine.cluster import figure_label
from capacity_tui.engine.estimate import (
    Estimate,
    FigureValue,
    Note,
    block_figures,
    bottleneck_text,
    figure,
    limit_label,
    part_label,
)
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.machine import ORIGINS, Origin
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Assumption, Plan, all_fields
from capacity_tui.engine.present.results import plan_value_text
from capacity_tui.engine.units import format_number
from capacity_tui.engine.verdict import Holds

MOST_ASSUMED = 6
"""Assumptions that are shown beside a verdict; data have all of them."""
TOLD_ORIGINS: tuple[Origin, ...] = ("given", "measured")
"""Origins of the hardware's figures that an answer names; those of the catalogue are the usual ones."""


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
    hardware = estimate.basis.devices or f"{devices} x {plan.hardware.name}"
    return f"{name}, {plan.task or 'train'}, {hardware}"


def verdict_sentence(estimate: Estimate) -> str:
    """Return the verdict and what it rests on with a capital letter."""
    return f"{estimate.verdict_text[0].upper()}{estimate.verdict_text[1:]}"


def blocks(plan: Plan, estimate: Estimate) -> tuple[Block, ...]:
    """Return the figures of an answer, those that are none left out."""
    found = (
        Block("Limits", tuple(_limits(estimate))),
        Block("Model", tuple(_model(estimate))),
        Block("Memory per device", tuple(_memory(plan, estimate))),
        Block("Time", tuple(_time(plan, estimate))),
        Block("Cluster", tuple(_levels(estimate))),
        Block("Cost and energy", tuple(_cost(estimate))),
        Block("Scaling law", tuple(_figures(estimate, "law"))),
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


def chosen(plan: Plan, estimate: Estimate) -> tuple[str, ...]:
    """Return what was filled in where the plan was open, and why; fields chosen together stand on one line."""
    found: dict[str, list[str]] = {}
    for path, why in estimate.basis.chosen.items():
        found.setdefault(why, []).append(f"{path}={plan.value(path)}")
    return tuple(f"{', '.join(fields)}: {why}" for why, fields in found.items())


def assumed_text(estimate: Estimate) -> str:
    """Return what the plan does not say, the most important first, in one line; empty where it says all."""
    return ", ".join(_assumed(entry) for entry in estimate.assumed[:MOST_ASSUMED])


def _assumed(entry: Assumption) -> str:
    known = all_fields().get(entry.key)
    label = known.knob.label if known is not None else entry.key.rpartition(".")[2]
    value = plan_value_text(entry.value)
    unit = known.knob.unit if known is not None else ""
    return f"{label.lower()} {value} {unit}".rstrip() if value else entry.why


def note_text(note: Note) -> str:
    """Return a note as one sentence or two."""
    return f"{note.title}: {note.detail}" if note.detail else note.title


def basis(estimate: Estimate) -> str:
    """Return where the numbers come from, as one line."""
    found = estimate.basis
    parts = [found.method, found.calibration]
    if found.catalogue_date:
        parts.append(f"catalogue of {found.catalogue_date}")
    for origin in TOLD_ORIGINS:
        labels = [figure_label(name) for name, told in found.hardware.items() if told.origin == origin]
        if labels:
            parts.append(f"{ORIGINS[origin]}: {', '.join(labels)}")
    if found.assumed:
        parts.append(f"assumed: {', '.join(found.assumed)}")
    parts += [f"range of {told}" for told in found.ranges]
    return "; ".join(part for part in parts if part)


def _limits(estimate: Estimate) -> Iterator[Row]:
    """Yield the constraints that do not hold surely: what each may be, and what the run reaches."""
    for limit in estimate.constraints:
        if limit.reached is not None and limit.holds is not Holds.YES:
            value, low, high = map(limit.written, limit.reached.ends)
            yield Row(limit.name, value, "" if low == high else f"{low} to {high}")


def _model(estimate: Estimate) -> Iterator[Row]:
    yield from _figures(estimate, "model")
    if estimate.model.complexity:
        yield Row("complexity", "", estimate.model.complexity)


def _memory(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    for row, key in _keyed(estimate, "memory"):
        yield row
        if key == Figure.MEMORY_RESERVED_BYTES and plan.report.detailed_breakdown:
            yield from _parts(estimate, "memory.parts", estimate.memory.parts)


def _time(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    if plan.task == "infer" and estimate.computation.infer is not None:
        yield _request(plan)
    is_fit = estimate.computation.iteration == "fit"
    divided = Figure.ESTIMATED_TRAIN_TIME_SECONDS if is_fit else Figure.STEP_SECONDS
    for row, key in _keyed(estimate, "time"):
        yield row
        if key == divided and plan.report.detailed_breakdown:
            yield from _parts(estimate, "computation.parts", estimate.computation.parts)
    yield Row("limited by", limit_label(estimate.bottleneck.kind), bottleneck_text(estimate.bottleneck))


def _levels(estimate: Estimate) -> Iterator[Row]:
    """Yield the levels that the devices fill; one alone goes without saying."""
    devices = float(estimate.computation.devices)
    levels = estimate.basis.levels
    inside = next((n for n, level in enumerate(levels) if float(level.devices) >= devices), len(levels) - 1)
    for level in levels[: inside + 1] if inside else ():
        yield Row(level.name, level.holds, level.speed)


def _request(plan: Plan) -> Row:
    """Return what a request is: every figure of serving rests on its length."""
    prompt, answer = (format_number(count) for count in (plan.inference.prompt_tokens, plan.inference.output_tokens))
    return Row("request", f"{prompt} + {answer} tok", "prompt and answer")


def _cost(estimate: Estimate) -> Iterator[Row]:
    if (price := figure(estimate, Figure.COST_USD_PER_HOUR)).number is None:
        yield _row(price)
    for row, key in _keyed(estimate, "cost"):
        # The price of an hour is the one fact of the block; all else follows from it.
        yield replace(row, spread=estimate.cost.source) if key == Figure.COST_USD_PER_HOUR else row
    if (power := figure(estimate, Figure.ENERGY_WATTS_AVERAGE)).number is None:
        yield _row(power)


def _parts(estimate: Estimate, group: str, parts: Mapping[str, Number]) -> Iterator[Row]:
    for part, value in parts.items():
        if value:
            yield Row(f"  {part_label(part)}", figure(estimate, f"{group}.{part}").text)


def _figures(estimate: Estimate, block: str) -> Iterator[Row]:
    return (row for row, _ in _keyed(estimate, block))


def _keyed(estimate: Estimate, block: str) -> Iterator[tuple[Row, str]]:
    """Yield the rows of a block for the figures that an estimate has, with their keys."""
    for key in block_figures(estimate, block):
        found = figure(estimate, key)
        if found.value is not None:
            yield _row(found), key


def _row(found: FigureValue) -> Row:
    return Row(found.metric.label, found.text, found.range_text)
