"""Configurations of other tools that were taken for plans."""

from __future__ import annotations

from capacity_tui.engine.catalog.reading import Document
from capacity_tui.engine.errors import Place, PlanError


def refuse_files_of_tools(document: Document) -> None:
    """Make sure that a document that is to be a plan is not a configuration of another tool.

    Raises:
        PlanError: it is one.
    """
    data = document.data
    # Sections of plans and of tools may be called the same; a model that is no section is of no plan.
    if not isinstance(data, dict) or isinstance(data.get("model"), dict):
        return
    from capacity_tui.engine.plan.imports.sources import tool_of  # noqa: PLC0415 - 15 ms, which no plan waits for

    tool = tool_of(data)
    if tool is not None:
        hint = f"commands read it with --import {document.file}"
        raise PlanError(f"a configuration of {tool.short_name}, not a plan", hint=hint, place=Place(document.file))
