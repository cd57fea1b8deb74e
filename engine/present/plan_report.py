"""The report of an answer in any form; its page has verdict, advice, figures, charts, sources and the plan itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capacity_tui.engine.estimate import METRICS, Answer, Estimate, Metric, Note, figure
from capacity_tui.engine.explain import Roofline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present.parts import (
    CodePart,
    Part,
    SectionsPart,
    TextPart,
    parts_as_html,
    parts_as_markdown,
    table_part,
)
from capacity_tui.engine.present.results import result_as_dict, to_json, to_yaml
from capacity_tui.engine.present.summary import chosen, figure_sections, headline, verdict_part
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_quantity


@dataclass(frozen=True, slots=True)
class Report:
    """What a report is written from."""

    answer: Answer
    draw_roofline: Callable[[Answer], Roofline | None]  # draws the roofline of an answer, where there is one
    one_of_many: bool = False  # whether other answers follow in the same text
    not_understood: tuple[str, ...] = ()  # words, keys and options that have no meaning in the plan


def write_report(form: str, report: Report) -> str:
    """Return an answer as json, yaml, markdown or html; data on one line, or as one document, where others follow."""
    plan, estimate = report.answer.plan, report.answer.estimate
    if form == "json":
        return to_json(result_as_dict(plan, estimate, report.not_understood), one_line=report.one_of_many)
    if form == "yaml":
        text = to_yaml(result_as_dict(plan, estimate, report.not_understood))
        return f"---\n{text}" if report.one_of_many else text
    write = parts_as_markdown if form == "markdown" else parts_as_html
    return write(headline(plan, estimate), page_parts(plan, estimate, report.draw_roofline(report.answer)))


def page_parts(plan: Plan, estimate: Estimate, roofline: Roofline | None = None) -> Iterator[Part]:
    """Yield the page of an answer: verdict, advice, figures with ranges, charts, sources, the plan."""
    from capacity_tui.engine.present.pictures.drawn_parts import (  # noqa: PLC0415 - loaded for pages alone
        bottleneck_parts,
        memory_parts,
        scalability_parts,
        time_parts,
    )

    report = plan.report
    is_drawn, in_full = report.include_plots, report.detailed_breakdown
    yield verdict_part(plan, estimate)
    if text := open_length(plan, estimate):
        yield TextPart(text, "quiet")
    if estimate.warnings:
        yield TextPart("Warnings", "strong")
        yield from (TextPart(note.detail, "item", note.title) for note in estimate.warnings)
    if report.include_recommendations and estimate.recommendations:
        yield from _advice(estimate)
    yield TextPart("Figures", "strong")
    # Parts of memory and time have tables of their own here.
    brief = plan.model_copy(update={"report": report.model_copy(update={"detailed_breakdown": False})})
    yield SectionsPart(("Value", "Range or source"), figure_sections(brief, estimate), has_aside=True)
    if in_full:
        yield from memory_parts(estimate, is_drawn=is_drawn)
        yield from time_parts(estimate, is_drawn=is_drawn)
    if roofline is not None:
        yield from bottleneck_parts(roofline, estimate, is_drawn=is_drawn, in_full=in_full)
    if estimate.scalability:
        yield from scalability_parts(estimate, is_drawn=is_drawn)
    yield from _basis(plan, estimate)
    yield TextPart("The plan", "strong")
    yield TextPart("With every default filled in; it can be loaded again.", "quiet")
    yield CodePart(dump_plan(plan))


def _advice(estimate: Estimate) -> Iterator[Part]:
    yield TextPart("Recommendations", "strong")
    yield TextPart("Each was estimated on its own; effects do not add up.", "quiet")
    rows = [(note.title, note.detail, ", ".join(savings(note, estimate))) for note in estimate.recommendations]
    yield table_part(("What", "Effect", "Changes"), rows)


def _basis(plan: Plan, estimate: Estimate) -> Iterator[Part]:
    known = estimate.basis
    yield TextPart("Basis of this estimate", "strong")
    rows = (
        ("Method", known.method),
        ("Calibration", known.calibration),
        ("Catalogue", f"checked {known.catalogue_date or 'on a day that is not known'}"),
        ("Prices", estimate.cost.source or "none known"),
        ("Assumed", "; ".join(known.assumed) or "nothing"),
        ("Chosen", "; ".join(chosen(plan, estimate))),
        ("Ranges", "from the 10th to the 90th percentile of the error on comparable published runs"),
    )
    yield table_part(("", ""), [row for row in rows if row[1]])


def savings(note: Note, estimate: Estimate) -> tuple[str, ...]:
    """Return what a note changes in an estimate, as signed amounts: time, memory, money."""
    saved = note.saves or {}
    firsts: dict[str, str] = {}
    for key, metric in METRICS.items():
        if metric.topic and key in saved:
            firsts.setdefault(metric.topic, key)
    return tuple(_saving(figure(estimate, key).metric, saved[key]) for key in firsts.values())


def _saving(metric: Metric, amount: float) -> str:
    return f"{metric.name} {'-' if amount < 0 else '+'}{format_quantity(abs(amount), metric.unit)}"


def open_length(plan: Plan, estimate: Estimate) -> str:
    """Return why a report names no whole job, empty where it does."""
    if estimate.computation.steps is not None or not plan.is_training:
        return ""
    return "The plan gives no length: with tokens, steps or epochs it has a time, cost and energy of the whole job."
