"""``audit``: what configurations of other tools will do, what contradicts itself in them, what they waste."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import imported_of, plan_flags
from capacity_tui.tui.headless.plans import DOES_NOT_FIT, machine_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve import Audit
    from capacity_tui.engine.solve import Finding as AuditFinding


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@plan_flags
@click.option("--ignored", is_flag=True, help="Name the options without a part in an estimate too.")
@format_option("table", "json")
@output_option
def audit(files: tuple[str, ...], flags: PlanFlags, ignored: bool, wanted: str | None, output: Path | None) -> int:
    """Tell what configurations of other tools will do: what fits, what contradicts itself, what is wasted.

    FILE is a configuration of DeepSpeed, the Hugging Face Trainer, Accelerate, Axolotl, vLLM or another tool, a shell
    script that starts one, or a folder of them. All of them together are one run. Flags say what they leave out.
    """
    from capacity_tui.engine.present import audit_as_dict, to_json
    from capacity_tui.engine.solve import audit as audited

    found = imported_of(files, flags)
    told = audited(found, machine_for(found.plan))
    if (wanted or format_of(output)) == "json":
        write(to_json(audit_as_dict(told)), output, files)
    else:
        write(as_text(_parts(told, ignored), output is not None), output, files)
    return 0 if told.runs else DOES_NOT_FIT


def _parts(told: Audit, ignored: bool) -> Iterator[RenderableType]:
    """Yield an audit from what it will do to what is not counted."""
    from rich.text import Text

    from capacity_tui.engine.present import figure_rows, setting_rows
    from capacity_tui.tui.headless.tables.answer import verdict_line
    from capacity_tui.tui.headless.tables.layout import table

    files = ", ".join(f"{each.file} ({each.tool.name})" for each in told.imported.readings)
    yield Text(f"Read: {files}")
    yield Text("What it will do:", style="bold")
    yield table(("setting", "value", "from"), setting_rows(told))
    if told.imported.guesses:
        yield Text(f"Not said by any file: {'; '.join(told.imported.guesses)}")
    if told.answer is not None:
        yield verdict_line(told.answer.plan, told.answer.estimate)
        yield table(("figure", "value", "range"), figure_rows(told), right=(1,))
        yield from _moments(told)
        if not told.runs:
            yield from _ways_out(told.answer)
    yield from _findings("Contradicts itself", told.contradictions, "nothing")
    yield from _findings("Wasted", told.wasted, "nothing found")
    yield from _not_counted(told, ignored)


def _moments(told: Audit) -> Iterator[RenderableType]:
    """Yield the memory over a step, and where it does not fit."""
    from capacity_tui.engine.units import format_bytes
    from capacity_tui.tui.headless.tables.layout import table

    if told.moments:
        rows = (
            (each.name, format_bytes(each.size), f"{format_bytes(each.short)} too much" if each.short else "")
            for each in told.moments
        )
        yield table(("moment of a step", "memory", ""), rows, right=(1,))


def _ways_out(answer: Answer) -> Iterator[RenderableType]:
    """Yield what would make it fit, and what else to mind."""
    from rich.text import Text

    from capacity_tui.engine.present import note_text
    from capacity_tui.engine.present import notes as answer_notes

    for title, entries in answer_notes(answer.plan, answer.estimate):
        yield Text(f"{title}:", style="bold")
        yield from (Text(f"  - {note_text(note)}") for note in entries)


def _findings(title: str, found: tuple[AuditFinding, ...], none: str) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(f"{title}:" if found else f"{title}: {none}", style="bold")
    for each in found:
        yield Text(f"  - {each.title}: {each.detail}" if each.detail else f"  - {each.title}")


def _not_counted(told: Audit, ignored: bool) -> Iterator[RenderableType]:
    """Yield the options that count for nothing, and why."""
    from rich.text import Text

    for reading in told.imported.readings:
        for remark in reading.unmodelled:
            yield Text(f"Not modelled: {remark.place}: {remark.why}")
        for remark in reading.unknown:
            near = f"; did you mean {remark.why}?" if remark.why else ""
            yield Text(f"Unknown: {remark.place}: {reading.tool.short_name} has no such option{near}")
    places = [place for reading in told.imported.readings for place in reading.ignored]
    if places:
        names = f": {', '.join(str(place.field) for place in places)}" if ignored else " (--ignored names them)"
        yield Text(f"Without a part in an estimate: {len(places)} options{names}")
