"""The map of two fields: a verdict for each pair of values, and one edit for the pair that is taken."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flow import press, settle, shown
from textual.pilot import Pilot

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import estimate_changes
from capacity_tui.engine.solve.modes import fill
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.views.dialogs.map import MapDialog
from capacity_tui.tui.widgets.lines import Lines

MakeApp = Callable[..., CapacityApp]
SERVED = {"task": "infer", "model": {"name": "llama-3.1-8b"}, "hardware": {"name": "rtx-4090"}}
TRAINED = {
    "task": "finetune",
    "model": {"name": "llama-3.2-1b"},
    "training": {"steps": 10, "seq_len": 1024, "micro_batch": 1, "global_batch": 8},
    "hardware": {"name": "rtx-4090"},
}


def lines(pilot: Pilot[None]) -> list[str]:
    return [line.plain for line in pilot.app.screen.query_one(".dialog Lines", Lines).in_sight]


@pytest.mark.parametrize(
    ("data", "across", "down"),
    [(SERVED, "inference.batch", "inference.prompt_tokens"), (TRAINED, "training.micro_batch", "training.seq_len")],
)
def test_pairs_estimated_together_are_what_each_is_alone(data: dict[str, object], across: str, down: str) -> None:
    plan, catalog = plan_from_data(data), load_catalog()
    changes = [{across: str(x), down: str(y)} for x in (1, 8, 64) for y in (256, 4096)]
    for change, found in zip(changes, estimate_changes(plan, changes, None, catalog), strict=True):
        try:
            alone = fill(edited(plan, change, catalog).plan, "balanced", None, catalog).estimate
        except CapacityError as error:
            assert isinstance(found, CapacityError)
            assert found.title == error.title
            continue
        assert isinstance(found, Estimate)
        assert found.verdict == alone.verdict
        assert float(found.computation.step_seconds.value) == pytest.approx(float(alone.computation.step_seconds.value))


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20)])
async def test_a_map_has_a_verdict_for_each_pair_and_marks_the_plans_own(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "#")
        assert isinstance(app.screen, MapDialog)
        text = "\n".join(lines(pilot))
        assert "Micro batch →" in text
        assert "Sequence ↓" in text
        assert any("▌" in line and "%]" in line.replace("% ]", "%]") for line in lines(pilot))
        assert all(mark in text for mark in "✓✗")
        assert "Micro batch 2, Sequence 4096" in text
        width = app.screen.query_one(".dialog Lines").size.width
        assert all(len(line) <= width for line in lines(pilot))
        await press(pilot, "tab")
        assert any(" h" in line for line in lines(pilot)[2:])


async def test_enter_takes_a_pair_in_one_edit(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "#")
        await press(pilot, "right", "up", "enter")
        document = app.session.store.document
        assert (document.get("training.micro_batch"), document.get("training.seq_len")) == ("4", "2048")
        assert "u undoes it" in shown(pilot, "note")
        await press(pilot, "u")
        assert app.session.store.edits == 0
        await press(pilot, "#", "escape")
        assert app.session.store.edits == 0


async def test_any_two_numbers_make_a_map(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "#", "y", *"global", "enter")
        assert "Global bat" in "\n".join(lines(pilot))
        await press(pilot, "x", *"devices", "enter")
        assert "Devices →" in "\n".join(lines(pilot))
        await press(pilot, "l", "enter")
        assert app.session.store.document.get("hardware.devices") == "16"


async def test_a_plan_that_serves_has_a_map_of_batch_and_prompt() -> None:
    plan = "{task: infer, model: {name: llama-3.2-1b}, hardware: {name: rtx-4090}}"
    app = CapacityApp(engine=CapacityEngine, source=plan)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "#")
        text = "\n".join(lines(pilot))
        assert "Batch →" in text
        assert "Prompt" in text
        assert "✓" in text
