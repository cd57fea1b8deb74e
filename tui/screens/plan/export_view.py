"""A plan in all the forms it can leave the program as."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.explain import roofline
from capacity_tui.engine.observe.history import history_entry, history_place, record_run
from capacity_tui.engine.present import Report, exported_plan, write_report
from capacity_tui.engine.present.frameworks import adapter_tools, framework_files
from capacity_tui.engine.solve import answer, command_text, command_words, settings_for_plan
from capacity_tui.tui.shown.exported import Export

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan import Plan

_PAGES = {"markdown": ("Report in Markdown", ".md"), "html": ("Report as a web page", ".html")}


def exports_of(
    said: Plan, filled: Plan, name: str, what: str, machine: Machine | None, catalog: Catalog
) -> tuple[Export, ...]:
    """Return every form of a settled plan.

    Args:
        said: the shorter plan that comes to the same when its open fields are filled; or the settled plan itself.
        filled: the settled plan.
        name: what files are called.
        what: which plan it is, in words.
        machine: what was detected, for plans that run on it.
        catalog: facts.
    """
    found = answer(filled, machine, catalog)

    def keep(setting: str) -> str:
        return record_run(history_entry(found), history_place(setting=setting))

    return tuple(replace(export, keep=keep) for export in _exports(said, found, name, what, machine, catalog))


def _exports(
    said: Plan, found: Answer, name: str, what: str, machine: Machine | None, catalog: Catalog
) -> Iterator[Export]:
    yield Export(
        "Plan as YAML", "all that will run, with what was predicted", {f"{name}.yaml": exported_plan(found, what)}
    )
    words = command_words(said, machine, catalog) or command_words(found.plan, machine, catalog)
    if words is not None:
        yield Export("One-line command", "the same plan without a file", {f"{name}.sh": f"{command_text(words)}\n"})
    yield from _framework_folders(found, name, machine, catalog)
    for form, (title, suffix) in _PAGES.items():
        text = write_report(form, Report(found, roofline))
        yield Export(title, "figures, ranges, advice and where they come from", {f"{name}{suffix}": text})


def _framework_folders(found: Answer, name: str, machine: Machine | None, catalog: Catalog) -> Iterator[Export]:
    """Yield the files of the plan's framework or engine, and those of other tools that fine-tune its adapters."""
    resolved = resolve_plan(found.plan, catalog, machine)
    settings = settings_for_plan(found.plan, machine, catalog)
    own = framework_files(resolved, catalog, settings)
    seen = set()
    for tool in (None, *adapter_tools(resolved, catalog)):
        files = own if tool is None else framework_files(resolved, catalog, settings, tool)
        told = tuple(file for file in files if file != "environment.sh")
        if told not in seen:
            seen.add(told)
            title = f"Files for {tool}" if tool else "Framework files"
            folder = "-".join((name, tool.lower() if tool else "run"))
            yield Export(title, ", ".join(told) or "environment.sh", files, folder)
