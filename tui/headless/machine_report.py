"""What ``detect`` and ``configs`` say beyond the facts, as plain data: score, suggestions, warnings, settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer, Note
    from capacity_tui.engine.machine import Machine, Setting
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.solve.modes import ModePlan


def report_data(machine: Machine, found: Answer | None, is_example: bool) -> dict[str, object]:
    """Return all of this as plain data, of a job that may stand for any; see ``job_notes``."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.cluster import placement_advice, score_machine
    from capacity_tui.engine.machine import cooling_now
    from capacity_tui.engine.solve import settings_for
    from capacity_tui.engine.solve.advice import (
        job_notes,
        machine_warnings,
        power_need,
        predicted_bottleneck,
        run_space,
    )

    data: dict[str, object] = {
        "score": asdict(score_machine(machine, load_catalog())),
        "settings": [asdict(setting) for setting in settings_for(machine)],
        "placement": [asdict(advice) for advice in placement_advice(machine, load_catalog())],
    }
    if found is None:
        return {**data, "warnings": [_note_data(note) for note in machine_warnings(machine)]}
    suggestions, warnings = job_notes(machine, found, load_catalog(), is_example)
    space = run_space(machine, found)
    power = power_need(machine, load_catalog(), found.plan.watch.supply_watts)
    return {
        **data,
        "disk_space": asdict(space) if space else None,
        "power_draw": {**asdict(power), "drawn_watts": power.drawn_watts, "headroom_watts": power.headroom_watts},
        "cooling": list(cooling_now(machine)),
        "bottleneck": predicted_bottleneck(found),
        "suggestions": [_note_data(note) for note in suggestions],
        "warnings": [_note_data(note) for note in warnings],
    }


def settings_of(plan: Plan, machine: Machine | None) -> tuple[Setting, ...]:
    """Return what suits a plan's hardware; what the plan decides otherwise is left out."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.solve import settings_for_plan

    return settings_for_plan(plan, machine, load_catalog())


def settings_data(entry: ModePlan, machine: Machine | None) -> list[dict[str, object]]:
    """Return the settings that suit a configuration's hardware as plain data."""
    return [asdict(setting) for setting in settings_of(entry.plan, machine)]


def settings_comment(entry: ModePlan, machine: Machine | None) -> list[str]:
    """Return the settings that suit a configuration's hardware as lines, none if there are none."""
    found = settings_of(entry.plan, machine)
    return ["", "Settings for this hardware:", *(f"  {s.name}={s.value}: {s.reason}" for s in found)] if found else []


def _note_data(note: Note) -> dict[str, object]:
    return {"code": note.code, "title": note.title, "detail": note.detail, "saves": dict(note.saves or {})}
