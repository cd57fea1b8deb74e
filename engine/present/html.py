"""An answer as one HTML page that needs nothing else: no network, no script, no font."""

from __future__ import annotations

from functools import cache, partial

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.explain import Roofline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present import plan_report
from capacity_tui.engine.present.pictures.charts import bar_chart, curve_name, roofline_chart, scaling_chart
from capacity_tui.engine.present.pictures.roofline_chart import limit_text
from capacity_tui.engine.present.reports import Report
from capacity_tui.engine.present.summary import blocks, chosen, headline, verdict_sentence
from capacity_tui.engine.printable import printable_lines
from capacity_tui.engine.solve import curves

CHARTS = ("memory", "time", "roofline", "scaling")


def report(of: Report) -> str:
    """Return a report as a page."""
    return to_html(of.answer.plan, of.answer.estimate, of.draw_roofline(of.answer))


def to_html(plan: Plan, estimate: Estimate, roofline: Roofline | None = None) -> str:
    """Return the answer as a page: verdict, figures with ranges, charts, advice, sources, the plan.

    Args:
        plan: the plan as resolved.
        estimate: what was computed for it.
        roofline: its roofline, where there is one.
    """
    drawn = plan.report.include_plots
    # Parts of memory and time have tables of their own here.
    brief = plan.report.model_copy(update={"detailed_breakdown": False})
    page = template("report.html").render(
        title=headline(plan, estimate),
        verdict=verdict_sentence(estimate),
        state=estimate.verdict.tone,
        blocks=blocks(plan.model_copy(update={"report": brief}), estimate),
        detailed=plan.report.detailed_breakdown,
        open_length=plan_report.open_length(plan, estimate),
        warnings=estimate.warnings,
        recommendations=estimate.recommendations if plan.report.include_recommendations else (),
        savings=partial(plan_report.savings, estimate=estimate),
        memory=plan_report.shares(plan_report.memory_slices(estimate)),
        time=plan_report.shares(plan_report.time_slices(estimate)),
        roofline=roofline,
        limit=limit_text(roofline, estimate) if roofline else "",
        kernel_heads=plan_report.KERNEL_HEADS,
        kernels=plan_report.kernel_rows(roofline) if roofline else (),
        scaling_heads=plan_report.SCALING_HEADS,
        scaling=plan_report.scaling_rows(estimate.scalability),
        scaling_text=plan_report.scaling_text(estimate.scalability),
        curve_names=[curve_name(curve) for curve in curves(estimate.scalability)],
        charts=_charts(estimate, roofline) if drawn else dict.fromkeys(CHARTS, ""),
        basis=estimate.basis,
        chosen=chosen(plan, estimate),
        price_source=estimate.cost.source,
        yaml=dump_plan(plan),
    )
    return printable_lines(page)


def _charts(estimate: Estimate, roofline: Roofline | None) -> dict[str, Markup]:
    """Return the charts by name; their texts are escaped where they are made."""
    drawn = {
        "memory": bar_chart(
            "Memory of a device", plan_report.memory_slices(estimate), plan_report.capacity_slice(estimate)
        ),
        "time": bar_chart("Time of a step", plan_report.time_slices(estimate)),
        "roofline": roofline_chart(roofline) if roofline else "",
        "scaling": scaling_chart(curves(estimate.scalability)),
    }
    return {name: Markup(chart) for name, chart in drawn.items()}  # noqa: S704


@cache
def template(name: str) -> Template:
    """Return the template of a page."""
    environment = Environment(
        loader=PackageLoader("capacity_tui.engine.present"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
