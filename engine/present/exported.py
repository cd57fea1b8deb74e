"""A plan as a file that says all that will run, with what was predicted of it as comments."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.present.summary import blocks, headline


def exported_plan(answer: Answer, heading: str = "", day: date | None = None) -> str:
    """Return a settled plan as YAML; what was predicted stands above it as comments, which loading passes over.

    Args:
        answer: the plan and its estimate.
        heading: what the plan is.
        day: when it was predicted; today by default.
    """
    return dump_plan(answer.plan, "\n".join((*([heading] if heading else []), *_predicted(answer, day))))


def _predicted(answer: Answer, day: date | None) -> Iterator[str]:
    """Yield the figures of an answer with their ranges, as lines."""
    on = day or datetime.now(UTC).date()
    checked = answer.estimate.basis.catalogue_date
    yield f"Predicted on {on.isoformat()}" + (f", hardware as of {checked}" if checked else "") + ":"
    yield f"  {headline(answer.plan, answer.estimate)}: {answer.estimate.verdict_text}"
    for block in blocks(answer.plan, answer.estimate):
        rows = [(row.label.strip(), row.value, row.spread) for row in block.rows if not row.label.startswith("  ")]
        width = max((len(label) for label, _, _ in rows), default=0)
        yield f"  {block.title}"
        for label, value, spread in rows:
            yield f"    {label:<{width}}  {' '.join(part for part in (value, f'({spread})' if spread else '') if part)}"
