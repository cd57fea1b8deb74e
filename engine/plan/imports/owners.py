"""Whose a file is: the tool that knows most of its options, or a plan of this program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.edit import leaves
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.files.loading import OLDER_KEYS, names_model
from capacity_tui.engine.plan.imports.scripts import Command, FurtherOptions
from capacity_tui.engine.plan.options.tools import Tool, tools

_MOST = 3  # Tools that a refusal names

_FEWEST_TELLING = 2  # Options by which a program that is none of a tool's is known for one

LEAST_KNOWN = 2  # A file is a tool's of which it knows one option in so many

_OLDER = frozenset(".".join(path) for path in OLDER_KEYS)


def known_tools() -> tuple[str, ...]:
    """Return the names of the tools whose files or commands are read."""
    return tuple(dict.fromkeys(known.short_name for known in tools().values() if known.signs or known.programs))


def nearest_tools(data: Iterable[Plain] = ()) -> str:
    """Return in words the tools that know most options of some data, and where all of them are listed."""
    options = [path for part in data if isinstance(part, dict) for path in options_of(part)]
    known = {one.short_name: sum(map(one.knows_option, options)) for one in tools().values() if one.signs}
    most = sorted((name for name in known if known[name] >= _FEWEST_TELLING), key=lambda name: -known[name])[:_MOST]
    near = ", ".join(f"{name} ({known[name]} of {len(options)} options known)" for name in most)
    return f"{f'nearest: {near}; ' if near else ''}capacity-tui help import lists the tools that are read"


def tool_of(data: Plain) -> Tool | None:
    """Return the tool that knows most options of some data, and has a sign among them; None where none has.

    Options count one by one, those in sections too: a section that is called as one of a tool is not yet the tool's.
    """
    if not isinstance(data, dict):
        return None
    options = list(options_of(data))
    scored = [
        (sum(candidate.knows_option(path) for path in options), candidate)
        for candidate in tools().values()
        if any(candidate.is_signed(path) for path in options)
    ]
    best = max((score for score, _ in scored), default=0)
    known = best * LEAST_KNOWN >= len(options)
    return next((candidate for score, candidate in scored if score == best and known), None)


def owner_of(command: Command) -> Tool | None:
    """Return the tool that a command starts, as its program says or its options; None for another program.

    A script may be called as one of a tool, as ``run_dpo.py``: it is that one where the tool knows its options. Options
    of one letter tell none, and ``ulimit -c 0`` has too few.
    """
    data = command.document.data if isinstance(command.document.data, dict) else {}
    options, owner = list(options_of(data)), command.owner
    if owner is not None and (
        not command.names_script or sum(map(owner.knows_option, options)) * LEAST_KNOWN >= len(options)
    ):
        return owner
    if command.program and len(data) < _FEWEST_TELLING and not any("." in key for key in data):
        return None
    given = {key: value for key, value in data.items() if not command.program or len(key.lstrip("-")) > 1}
    alike = tool_of(given)
    counts = alike is not None and any(alike.named(key) in alike.options for key in given)
    return alike if counts or not command.program else None


def options_of(data: Mapping[str, Plain], above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of the options in some data."""
    for key, value in data.items():
        path = (*above, str(key))
        if isinstance(value, FurtherOptions):
            continue
        if isinstance(value, dict) and value:
            yield from options_of(value, path)
        else:
            yield path


def refuse_files_of_tools(document: Document) -> None:
    """Make sure that a document that is to be a plan is not a configuration of another tool.

    Raises:
        PlanError: it is one.
    """
    if not is_of_tool(document):
        return

    tool, file_place = tool_of(document.data), Place(document.file)
    if tool is None:
        hint = f"{nearest_tools([document.data])}; or write model: {{name: ...}} and hardware: {{name: ...}}"
        raise PlanError("neither a plan nor a configuration of a known tool", hint=hint, place=file_place)
    hint = f"commands read it with --import {document.file}"
    raise PlanError(f"a configuration of {tool.short_name}, not a plan", hint=hint, place=file_place)


def is_of_tool(document: Document) -> bool:
    """Whether a document is rather a configuration of another tool, known or not, than a plan.

    Sections of plans and of tools may be called the same: a plan names its model, and most keys are a plan's.
    """
    data = document.data
    if not isinstance(data, dict) or names_model(data):
        return False

    return tool_of(data) is not None or not _is_mostly_plan(data)


def _is_mostly_plan(data: Mapping[str, Plain]) -> bool:
    """Whether most of its options are fields of plans; a misspelt plan is still one."""
    paths = [path for path, _ in leaves(data, (Key.MODEL_SPEC, Key.HARDWARE_SPEC))]
    return 2 * sum(path in all_fields() or path in _OLDER for path in paths) >= len(paths)
