"""What ``detect`` says beyond the facts: score, bottleneck, suggestions, warnings, topology, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.api import Answer, Machine, ModePlan, Note, Plan, Score, Setting


def score_of(machine: Machine) -> Score:
    """Return the machine's score, with the disk as measured where it was."""
    from capacity_tui.engine.api import load_catalog, score_machine

    disk = machine.benchmarked.disk_read.value if machine.benchmarked else None
    return score_machine(machine, load_catalog(), disk)


def score_parts(score: Score) -> Iterator[RenderableType]:
    """Yield the score with the rule behind it."""
    from rich.text import Text

    from capacity_tui.tui.headless.tables.layout import table

    yield Text(f"Performance score: {score.value:.1f}/10, tier {score.tier} ({score.verdict})", style="bold")
    rows = [
        (
            part.name,
            part.value_text(),
            "" if part.points is None else f"{part.points:.1f}",
            f"{part.weight:.0%}",
            part.known,
        )
        for part in score.parts
    ]
    yield table(("part", "value", "points", "weight", "known from"), rows, right=(2, 3))
    yield Text(f"{score.rule}; weakest: {score.weakest}", style="dim")


def job_parts(machine: Machine, found: Answer) -> Iterator[RenderableType]:
    """Yield what limits a job on this machine, and what to do and to know about it."""
    from rich.text import Text

    from capacity_tui.engine.api import job_notes, load_catalog, power_text, predicted_bottleneck, run_space, space_text

    suggestions, warnings = job_notes(machine, found, load_catalog())
    name = found.plan.model.name or "the model"
    yield Text(f"Predicted bottleneck for {name}: {predicted_bottleneck(found)}", style="bold")
    space, power = run_space(machine, found), power_text(machine)
    if space is not None:
        yield Text(f"Disk space it takes: {space_text(space)}")
    if power is not None:
        yield Text(f"Power: {power}")
    yield from _notes("Optimization suggestions", suggestions)
    yield from _notes("Warnings", warnings)


def surroundings_parts(machine: Machine, ascii_only: bool) -> Iterator[RenderableType]:
    """Yield topology and settings."""
    from rich.text import Text

    from capacity_tui.engine.api import load_catalog, placement_advice, settings_for, topology_lines
    from capacity_tui.tui.headless.tables.layout import table

    yield Text("Topology:", style="bold")
    yield from (Text(f"  {line}") for line in topology_lines(machine, ascii_only))
    for advice in placement_advice(machine, load_catalog()):
        yield Text(f"  - {advice.dimension}: {advice.where} ({advice.reason})")
    yield Text("Settings:", style="bold")
    yield table(("setting", "value", "why"), [(s.name, s.value, s.reason) for s in settings_for(machine)])


def report_data(machine: Machine, found: Answer | None) -> dict[str, object]:
    """Return all of this as plain data."""
    from capacity_tui.engine.api import (
        job_notes,
        load_catalog,
        machine_warnings,
        placement_advice,
        predicted_bottleneck,
        run_space,
        settings_for,
    )

    data: dict[str, object] = {
        "score": asdict(score_of(machine)),
        "settings": [asdict(setting) for setting in settings_for(machine)],
        "placement": [asdict(advice) for advice in placement_advice(machine, load_catalog())],
    }
    if found is None:
        return {**data, "warnings": [_note_data(note) for note in machine_warnings(machine)]}
    suggestions, warnings = job_notes(machine, found, load_catalog())
    space = run_space(machine, found)
    return {
        **data,
        "disk_space": asdict(space) if space else None,
        "bottleneck": predicted_bottleneck(found),
        "suggestions": [_note_data(note) for note in suggestions],
        "warnings": [_note_data(note) for note in warnings],
    }


def settings_of(plan: Plan, machine: Machine | None) -> tuple[Setting, ...]:
    """Return what suits a plan's hardware; what the plan decides otherwise is left out."""
    from capacity_tui.engine.api import AcceleratorRow, InstanceRow, load_catalog, settings_for, settings_for_row

    training = plan.training
    decided = {"precision": training.precision, "attention": training.attention}
    if machine is not None:
        found = settings_for(machine)
    else:
        catalog = load_catalog()
        row = catalog.find_hardware(plan.hardware.name)
        if isinstance(row, InstanceRow):
            row = catalog.accelerators.find(row.accelerator)
        found = settings_for_row(row) if isinstance(row, AcceleratorRow) else ()
    return tuple(setting for setting in found if decided.get(setting.name, setting.value) == setting.value)


def settings_data(entry: ModePlan, machine: Machine | None) -> list[dict[str, object]]:
    """Return the settings that suit a configuration's hardware as plain data."""
    return [asdict(setting) for setting in settings_of(entry.plan, machine)]


def settings_comment(entry: ModePlan, machine: Machine | None) -> list[str]:
    """Return the settings that suit a configuration's hardware as lines, none if there are none."""
    found = settings_of(entry.plan, machine)
    return ["", "Settings for this hardware:", *(f"  {s.name}={s.value}: {s.reason}" for s in found)] if found else []


def _note_data(note: Note) -> dict[str, object]:
    return {"code": note.code, "title": note.title, "detail": note.detail, "saves": dict(note.saves or {})}


def _notes(title: str, notes: Sequence[Note]) -> Iterator[RenderableType]:
    from rich.text import Text

    if notes:
        yield Text(f"{title}:", style="bold")
        yield from (Text(f"  - {note.title}: {note.detail}") for note in notes)
