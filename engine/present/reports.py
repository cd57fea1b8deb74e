"""Answers in any form a report can have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.explain import Roofline
from capacity_tui.engine.schema import REPORT_FORMATS


@dataclass(frozen=True, slots=True)
class Report:
    """What a report is written from.

    Attributes:
        answer: the plan and its estimate.
        draw_roofline: draws the roofline of an answer, where there is one.
        one_of_many: whether other answers follow in the same text.
        not_understood: words, keys and options that have no meaning in the plan.
    """

    answer: Answer
    draw_roofline: Callable[[Answer], Roofline | None]
    one_of_many: bool = False
    not_understood: tuple[str, ...] = ()


def write_report(form: str, report: Report) -> str:
    """Return an answer in one of the forms that are written here, which tables are not."""
    module, _, name = REPORT_FORMATS[form].writer.partition(":")
    write: Callable[[Report], str] = getattr(import_module(f"{__package__}.{module}"), name)
    return write(report)
