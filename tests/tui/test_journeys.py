"""What people come with, from the first screen to an answer, with every key counted."""

from __future__ import annotations

from flow import press, press_only, row, settle, shown
from textual.pilot import Pilot

from capacity_tui.engine.solve import answer
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.settings import Settings
from capacity_tui.tui.views.dialogs.picker import TrialPicker
from capacity_tui.tui.widgets.lines import Lines

SIZE = (80, 24)
NAMES = {" ": "space", ".": "full_stop", "-": "minus"}


def planned(app: CapacityApp) -> PlanDocument:
    document = app.session.store.document
    assert isinstance(document, PlanDocument)
    return document


async def type_keys(pilot: Pilot[None], *keys: str) -> None:
    await press(pilot, *(NAMES.get(key, key) for key in keys))


async def test_lora_of_a_large_model_is_three_keys_from_the_first_screen(real_engine: CapacityEngine) -> None:
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await type_keys(pilot, "down", "down", "enter")
        plan = planned(app).plan
        told = shown(pilot, "answer")
        has_deltas = "%" in row(pilot, "plans", "cost")
        assert ("deltas" in str(pilot.app.screen.query_one("#plans").border_subtitle)) is has_deltas
    assert (plan.model.name, plan.training.method, plan.hardware.devices) == ("llama-3.1-70b", "lora", 8)
    assert (plan.training.seq_len, plan.training.tokens) == (4096, 50e6)
    estimate = answer(plan).estimate
    assert estimate.fits
    assert all(
        part in told for part in (estimate.verdict.words, "GiB", "h", "$")
    )  # memory, time and cost at 80 columns


async def test_which_hardware_serves_a_large_model_takes_fifteen_keys(real_engine: CapacityEngine) -> None:
    """The list of hardware, sorted by what fits, answers it; another key takes the best."""
    keys = ["s", "e", "tab", *"72b bs16", "enter", "H", "tab"]
    assert len(keys) <= 15
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await type_keys(pilot, *keys[:-2])
        await press_only(pilot, *keys[-2:])  # rows are tried for as long as the list is open
        assert isinstance(app.screen, TrialPicker)
        lines = app.screen.query_one(".dialog Lines", Lines)
        while "✓" not in lines.lines[1].plain:
            await pilot.pause(0.05)
        best = lines.lines[1].plain
        assert "GiB" in best and "/token" in best
        await press(pilot, "enter")
        assert planned(app).plan.hardware.name in best
        assert "✓ fits" in shown(pilot, "answer")
    assert not app.mistakes


async def test_what_does_not_fit_is_made_to_fit_by_one_key_and_taken_back(real_engine: CapacityEngine) -> None:
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False), accelerator="rtx-4090")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await type_keys(pilot, "i", *"serve 72b", "enter")
        assert "✗ does not fit" in shown(pilot, "answer")
        refused = planned(app).plan
        await type_keys(pilot, "a")
        assert "✗" not in shown(pilot, "answer")
        await press_only(pilot, "u")
        assert planned(app).plan == refused
    assert not app.mistakes
