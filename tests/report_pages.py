"""Answers as whole pages, for tests that read them."""

from __future__ import annotations

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.explain import Roofline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present import headline, parts_as_html, parts_as_markdown
from capacity_tui.engine.present.plan_report import page_parts


def to_markdown(plan: Plan, estimate: Estimate, roofline: Roofline | None = None) -> str:
    return parts_as_markdown(headline(plan, estimate), page_parts(plan, estimate, roofline))


def to_html(plan: Plan, estimate: Estimate, roofline: Roofline | None = None) -> str:
    return parts_as_html(headline(plan, estimate), page_parts(plan, estimate, roofline))
