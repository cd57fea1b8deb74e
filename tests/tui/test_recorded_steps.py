"""The recording of the README: what its steps wait for comes onto the screen, and was not there before."""

from __future__ import annotations

import re

import pytest
from flow import cells, press
from textual.pilot import Pilot

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.settings import Settings
from screenshots.record import COLUMNS, DOWN, ENTER, ESCAPE, LINES, STEPS

NAMES = {ENTER: "enter", DOWN: "down", ESCAPE: "escape", " ": "space"}


def screen(pilot: Pilot[None]) -> str:
    return "\n".join("".join(segment.text for segment in line) for line in cells(pilot.app))


async def test_each_step_brings_the_words_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    question = PlanDocument.question
    few = {"hardware": "h100-sxm-80gb,b200-sxm", "devices": "8"}  # a search of all would take the time of the test
    monkeypatch.setattr(PlanDocument, "question", lambda self, given: question(self, {**given, **few}))
    monkeypatch.setattr(CapacityEngine, "detect", lambda _: ())
    app = CapacityApp(source=None, settings=Settings(live_seconds=60))
    async with app.run_test(size=(COLUMNS, LINES)) as pilot:
        for step in STEPS:
            was_there = bool(step.keys) and bool(re.search(step.until, screen(pilot)))
            keys = [step.keys] if step.keys in NAMES else list(step.keys)
            await press(pilot, *(NAMES.get(key, key) for key in keys))
            assert not was_there, f"{step.until!r} stands there before {step.keys!r}"
            assert re.search(step.until, screen(pilot)), f"no {step.until!r} after {step.keys!r}:\n{screen(pilot)}"
