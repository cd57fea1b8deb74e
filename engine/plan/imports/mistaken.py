"""Configurations of other tools that were taken for plans."""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.catalog import Document, Plain
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.edit import leaves
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.files.loading import OLDER_KEYS

_OLDER = frozenset(".".join(path) for path in OLDER_KEYS)


def refuse_files_of_tools(document: Document) -> None:
    """Make sure that a document that is to be a plan is not a configuration of another tool.

    Raises:
        PlanError: it is one.
    """
    if not is_of_tool(document):
        return
    from capacity_tui.engine.plan.imports.sources import known_tools, tool_of  # noqa: PLC0415 - see below

    tool, file_place = tool_of(document.data), Place(document.file)
    if tool is None:
        hint = f"known: {known_tools()}; or write model: {{name: ...}} and hardware: {{name: ...}}"
        raise PlanError("neither a plan nor a configuration of a known tool", hint=hint, place=file_place)
    hint = f"commands read it with --import {document.file}"
    raise PlanError(f"a configuration of {tool.short_name}, not a plan", hint=hint, place=file_place)


def is_of_tool(document: Document) -> bool:
    """Whether a document is rather a configuration of another tool, known or not, than a plan.

    Sections of plans and of tools may be called the same: a plan names its model, and most keys are a plan's.
    """
    data = document.data
    if not isinstance(data, dict) or _has_model(data):
        return False
    from capacity_tui.engine.plan.imports.sources import tool_of  # noqa: PLC0415 - 15 ms, which no plan waits for

    return tool_of(data) is not None or not _is_mostly_plan(data)


def _has_model(data: Mapping[str, Plain]) -> bool:
    model = data.get("model")
    return isinstance(model, dict) and bool({"name", "config"} & model.keys())


def _is_mostly_plan(data: Mapping[str, Plain]) -> bool:
    """Whether most of its options are fields of plans; a misspelt plan is still one."""
    paths = [path for path, _ in leaves(data, (Key.MODEL_SPEC, Key.HARDWARE_SPEC))]
    return 2 * sum(path in all_fields() or path in _OLDER for path in paths) >= len(paths)
