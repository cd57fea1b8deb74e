"""What an answer says: its figures and notes, and the report of it in any form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

from capacity_tui.engine.cluster import figure_label
from capacity_tui.engine.estimate import (
    METRICS,
    Answer,
    Estimate,
    FigureValue,
    Note,
    block_figures,
    bottleneck_text,
    figure,
    limit_label,
    panel_figures,
    part_label,
)
from capacity_tui.engine.keys import Figure, Parts
from capacity_tui.engine.machine import ORIGINS, Origin
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Assumption, Plan, all_fields, field_label
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present.parts import Part, Section, SectionsPart, TextPart
from capacity_tui.engine.present.results import plan_value_text
from capacity_tui.engine.units import format_number
from capacity_tui.engine.verdict import Holds, Verdict

MOST_ASSUMED = 6  # Assumptions that are shown beside a verdict; data have all of them
REPORTED_ORIGINS: tuple[Origin, ...] = ("given", "measured")
"""Origins of the hardware's figures that an answer names; those of the catalogue are the usual ones."""


class Row(NamedTuple):
    """One figure."""

    label: str  # what it is; parts of the figure above begin with two spaces
    value: str  # the figure with its unit
    spread: str = ""  # its range, empty where there is none


def headline(plan: Plan, estimate: Estimate) -> str:
    """Return the plan in a few words: ``llama-3-8b, train, 64 x h100-sxm-80gb``."""
    name = plan.model.name or plan.model.config or "model"
    devices = format_number(float(estimate.computation.devices))
    hardware = estimate.basis.devices or f"{devices} x {plan.hardware.name}"
    return f"{name}, {plan.task or 'train'}, {hardware}"


def figure_sections(plan: Plan, estimate: Estimate) -> tuple[Section, ...]:
    """Return the figures of an answer, those that are none left out."""
    sections = (
        Section("Limits", tuple(_limits(estimate))),
        Section("Model", tuple(_model(estimate))),
        Section("Memory per device", tuple(_memory(plan, estimate))),
        Section("Time", tuple(_time(plan, estimate))),
        Section("Cluster", tuple(_levels(estimate))),
        Section("Cost and energy", tuple(_cost(estimate))),
        Section("Scaling law", tuple(row for row, _ in _keyed(estimate, "law"))),
    )
    return tuple(section for section in sections if section.rows)


def notes(plan: Plan, estimate: Estimate) -> tuple[tuple[str, tuple[Note, ...]], ...]:
    """Return warnings and, if the plan's report wants them, recommendations; each under its heading."""
    wanted = plan.report.include_recommendations
    result = (("Warnings", estimate.warnings), ("Recommendations", estimate.recommendations if wanted else ()))
    return tuple((title, entries) for title, entries in result if entries)


def chosen(plan: Plan, estimate: Estimate) -> tuple[str, ...]:
    """Return what was filled in where the plan was open, and why; fields chosen together stand on one line."""
    by_reason: dict[str, list[str]] = {}
    for path, why in estimate.basis.chosen.items():
        by_reason.setdefault(why, []).append(f"{path}={plan.value(path)}")
    return tuple(f"{', '.join(fields)}: {why}" for why, fields in by_reason.items())


def assumed_text(estimate: Estimate) -> str:
    """Return what the plan does not say, the most important first, in one line; empty where it says all."""
    return ", ".join(_assumed(entry) for entry in estimate.assumed[:MOST_ASSUMED])


def _assumed(entry: Assumption) -> str:
    known = all_fields().get(entry.key)
    value = plan_value_text(entry.value)
    unit = known.knob.unit if known is not None else ""
    return f"{field_label(entry.key).lower()} {value} {unit}".rstrip() if value else entry.why


def note_text(note: Note) -> str:
    """Return a note as one sentence or two."""
    return f"{note.title}: {note.detail}" if note.detail else note.title


def basis(estimate: Estimate) -> str:
    """Return where the numbers come from, as one line."""
    result = estimate.basis
    parts = [result.method, result.calibration]
    if result.catalogue_date:
        parts.append(f"catalogue of {result.catalogue_date}")
    for origin in REPORTED_ORIGINS:
        labels = [figure_label(name) for name, entry in result.hardware.items() if entry.origin == origin]
        if labels:
            parts.append(f"{ORIGINS[origin]}: {', '.join(labels)}")
    if result.assumed:
        parts.append(f"assumed: {', '.join(result.assumed)}")
    parts += [f"range of {entry}" for entry in result.ranges]
    return "; ".join(part for part in parts if part)


def _limits(estimate: Estimate) -> Iterator[Row]:
    """Yield what is wanted of the run, and what else does not hold surely: what each may be, and what is reached."""
    for limit in estimate.constraints:
        if limit.reached is not None and (limit.holds is not Holds.YES or limit.broken_as is Verdict.MISSES_LIMIT):
            value, low, high = map(limit.written, limit.reached.ends)
            spread = "" if low == high else f"{low} to {high}"
            yield Row(limit.name, value, ", ".join(filter(None, (spread, "holds" * (limit.holds is Holds.YES)))))


def _model(estimate: Estimate) -> Iterator[Row]:
    yield from (row for row, _ in _keyed(estimate, "model"))
    if estimate.model.complexity:
        yield Row("complexity", "", estimate.model.complexity)


def _memory(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    for row, key in _keyed(estimate, "memory"):
        yield row
        if key == Figure.MEMORY_RESERVED_BYTES and plan.report.detailed_breakdown:
            yield from _parts(estimate, Parts.MEMORY, estimate.memory.parts)


def _time(plan: Plan, estimate: Estimate) -> Iterator[Row]:
    if plan.is_inference and (speed := estimate.computation.infer) is not None:
        yield _request(plan, writes=speed.time_per_output_token_seconds is not None)
    is_fit = estimate.computation.iteration == "fit"
    divided = Figure.ESTIMATED_TRAIN_TIME_SECONDS if is_fit else Figure.STEP_SECONDS
    for row, key in _keyed(estimate, "time"):
        yield row
        if key == divided and plan.report.detailed_breakdown:
            yield from _parts(estimate, Parts.COMPUTATION, estimate.computation.parts)
    yield Row("limited by", limit_label(estimate.bottleneck.kind), bottleneck_text(estimate.bottleneck))


def _levels(estimate: Estimate) -> Iterator[Row]:
    """Yield the levels that the devices fill; one alone goes without saying."""
    devices = float(estimate.computation.devices)
    levels = estimate.basis.levels
    inside = next((n for n, level in enumerate(levels) if float(level.devices) >= devices), len(levels) - 1)
    for level in levels[: inside + 1] if inside else ():
        yield Row(level.name, level.holds, level.speed)


def _request(plan: Plan, *, writes: bool) -> Row:
    """Return what a request is: every figure of serving rests on its length; an encoder writes no answer."""
    prompt, answer = (format_number(count) for count in (plan.inference.prompt_tokens, plan.inference.output_tokens))
    return Row(
        "request", *((f"{prompt} + {answer} tok", "prompt and answer") if writes else (f"{prompt} tok", "prompt"))
    )


def _cost(estimate: Estimate) -> Iterator[Row]:
    if (price := figure(estimate, Figure.COST_USD_PER_HOUR)).number is None:
        yield _row(price)
    for row, key in _keyed(estimate, "cost"):
        # The price of an hour is the one fact of the block; all else follows from it.
        yield row._replace(spread=estimate.cost.source) if key == Figure.COST_USD_PER_HOUR else row
    if (power := figure(estimate, Figure.ENERGY_WATTS_AVERAGE)).number is None:
        yield _row(power)


def _parts(estimate: Estimate, group: str, parts: Mapping[str, Number]) -> Iterator[Row]:
    for part, value in parts.items():
        if value:
            yield Row(f"  {part_label(part)}", figure(estimate, f"{group}.{part}").text)


def _keyed(estimate: Estimate, block: str) -> Iterator[tuple[Row, str]]:
    """Yield the rows of a block for the figures that an estimate has, with their keys."""
    for key in block_figures(estimate, block):
        figure_value = figure(estimate, key)
        if figure_value.value is not None:
            yield _row(figure_value), key


def _row(figure_value: FigureValue) -> Row:
    return Row(figure_value.metric.label, figure_value.text, figure_value.range_text)


def exported_plan(answer: Answer, heading: str = "", day: date | None = None) -> str:
    """Return a settled plan as YAML; what was predicted that day stands above it as comments, which loading skips."""
    return dump_plan(answer.plan, "\n".join((*([heading] if heading else []), *_predicted(answer, day))))


def _predicted(answer: Answer, day: date | None) -> Iterator[str]:
    on = day or datetime.now(UTC).date()
    checked = answer.estimate.basis.catalogue_date
    yield f"Predicted on {on.isoformat()}" + (f", hardware as of {checked}" if checked else "") + ":"
    yield f"  {headline(answer.plan, answer.estimate)}: {answer.estimate.verdict_text}"
    for section in figure_sections(answer.plan, answer.estimate):
        rows = [row for row in section.rows if not row[0].startswith("  ")]
        width = max((len(label) for label, _, _ in rows), default=0)
        yield f"  {section.title}"
        for label, value, spread in rows:
            yield f"    {label:<{width}}  {f'{value} ({spread})' if value and spread else value or spread}"


def verdict_part(plan: Plan, estimate: Estimate) -> TextPart:
    """Return what is run, and whether it fits."""
    return TextPart(estimate.verdict_text, estimate.verdict.tone, headline(plan, estimate))


def calendar_text(estimate: Estimate) -> str:
    """Return what failures make of a training, in one line; empty where they hardly count, or nothing is known."""
    if Figure.RELIABILITY_GOODPUT not in panel_figures(estimate):
        return ""
    calendar, usd, goodput, failures, mtbf = (
        figure(estimate, key)
        for key in (
            Figure.RELIABILITY_CALENDAR_SECONDS,
            Figure.RELIABILITY_CALENDAR_USD,
            Figure.RELIABILITY_GOODPUT,
            Figure.RELIABILITY_FAILURES,
            Figure.RELIABILITY_MTBF_HOURS,
        )
    )
    price = "" if usd.number is None else f" and {usd.text}"
    every = f"{failures.text} failures expected, one every {mtbf.text}"
    whole = f"{calendar.text}{price} on the calendar ({calendar.range_text})"
    return f"With failures: {whole}, goodput {goodput.text}, {every}"


def answer_parts(plan: Plan, estimate: Estimate, *, in_full: bool = False) -> Iterator[Part]:
    """Yield what an answer says, from the verdict to what was assumed; in full where all the numbers come from."""
    yield verdict_part(plan, estimate)
    if calendar := calendar_text(estimate):
        yield TextPart(calendar)
    if assumed := assumed_text(estimate):
        yield TextPart(f"Assumed: {assumed}", "quiet")
    yield SectionsPart(("value", "range"), figure_sections(plan, estimate), has_aside=True)
    if estimate.scalability:
        from capacity_tui.engine.present.cluster_report import scaling_table, scaling_text  # noqa: PLC0415 - few ask

        yield scaling_table(estimate.scalability)
        yield from (TextPart(line) for line in scaling_text(estimate.scalability))
    yield from note_parts(plan, estimate)
    if settings := chosen(plan, estimate):
        yield TextPart("Chosen:", "strong")
        yield from (TextPart(line, "item") for line in settings)
    if in_full:
        yield TextPart(f"Basis: {basis(estimate)}", "quiet")
    else:
        yield from further_assumptions(estimate)


def further_assumptions(estimate: Estimate) -> Iterator[Part]:
    """Yield what an estimate takes for granted that no field of the plan says."""
    if estimate.basis.assumed:
        yield TextPart(f"Also assumed: {', '.join(estimate.basis.assumed)}", "quiet")


def brief_parts(plan: Plan, estimate: Estimate) -> Iterator[Part]:
    """Yield what people read of an answer: verdict, limits that are missed, main figures, the first of the notes."""
    yield verdict_part(plan, estimate)
    if assumed := assumed_text(estimate):
        yield TextPart(f"Assumed: {assumed}", "quiet")
    main = (key for key in panel_figures(estimate) if METRICS[key].is_main)
    values = (value for key in main if (value := figure(estimate, key)).value is not None)
    figures = (_row(value)._replace(label=value.metric.name) for value in values)
    limited = Row("limited by", limit_label(estimate.bottleneck.kind))
    yield SectionsPart(
        ("value", "range"), (Section("In brief", (*_limits(estimate), *figures, limited)),), has_aside=True
    )
    for title, entries in notes(plan, estimate):
        more = f" (and {len(entries) - 1} more)" if len(entries) > 1 else ""
        yield TextPart(f"{title.removesuffix('s')}: {entries[0].title}{more}")
    yield TextPart("Full report: --no-brief; sources of the figures: -v", "quiet")


def note_parts(plan: Plan, estimate: Estimate) -> Iterator[Part]:
    """Yield warnings and recommendations as lists."""
    for title, entries in notes(plan, estimate):
        yield TextPart(f"{title}:", "strong")
        yield from (TextPart(note_text(note), "item") for note in entries)
