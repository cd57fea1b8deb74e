"""The forms a report can have: the one list that plans, the command line and writers of reports read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """One form of a report.

    Attributes:
        suffixes: names of files that ask for it.
        is_drawn: whether it is drawn for the terminal there is.
        is_page: whether it is one page for one plan.
    """

    suffixes: tuple[str, ...]
    is_drawn: bool = False
    is_page: bool = False


REPORT_FORMATS: Mapping[str, ReportFormat] = MappingProxyType(
    {
        "table": ReportFormat((".txt",), is_drawn=True),
        "markdown": ReportFormat((".md",)),
        "json": ReportFormat((".json",)),
        "html": ReportFormat((".html", ".htm"), is_page=True),
        "yaml": ReportFormat((".yaml", ".yml")),
    }
)


def format_of_suffix(suffix: str) -> str | None:
    """Return the form that the suffix of a file asks for; None where it asks for none."""
    return next((name for name, form in REPORT_FORMATS.items() if suffix.lower() in form.suffixes), None)


def known_format(name: object) -> object:
    """Return the name of a form as it is; used by the plan's validator.

    Raises:
        ValueError: naming what is allowed.
    """
    if not isinstance(name, str) or name not in REPORT_FORMATS:
        raise ValueError(f"allowed: {', '.join(REPORT_FORMATS)}")
    return name
