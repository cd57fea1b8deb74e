"""The view of runs: what goes on and what is past, its curves, and taking a run's plan over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from fake_engine import FakeEngine
from flow import once, press, settle, shown
from textual.pilot import Pilot

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.dialogs.help import TextDialog
from capacity_tui.tui.views.run import screen
from capacity_tui.tui.views.run.screen import RunScreen

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, HUGE = (120, 40), (80, 24), (60, 20), (200, 60)


async def runs(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await press(pilot, "space", "r")
    await once(pilot, lambda: "looking for runs" not in shown(pilot, "runs"))
    await press(pilot, *keys)


async def test_a_run_stands_beside_its_prediction_with_devices_and_events(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await runs(pilot)
        assert "●" in shown(pilot, "runs").splitlines()[1]
        assert "step 40/100 · 1 h 12 min left" in shown(pilot, "run-head")
        curves = shown(pilot, "curves")
        assert "✓ inside 6.99 (5.6 – 8.3)" in curves
        assert "! slower: 0.41 × of" in curves
        assert "░" in curves
        assert "GPU0  97 %  61.2/79.6 GiB  640/700 W  74 °C" in shown(pilot, "usage")
        assert "4711  python  61.0 GiB" in shown(pilot, "usage")
        events = shown(pilot, "events")
        assert events.index("why: clocks") < events.index("10:00:07") < events.index("10:00:01")


async def test_another_run_is_shown_when_the_cursor_moves_and_has_no_plan(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await runs(pilot, "j")
        await once(pilot, lambda: "python old.py on here" in shown(pilot, "run-head"))
        await press(pilot, "enter")
        assert "this run has no plan" in shown(pilot, "note")
        await press(pilot, "k")
        assert "nothing can be learnt from this run" in shown(pilot, "note")
        assert pilot.app.session.store.edits == 0


async def test_a_run_is_learnt_from_and_its_plan_taken_or_pinned_as_edits(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await runs(pilot)
        session = pilot.app.session
        await press(pilot, "k")
        assert "estimates for h100 rest on this run" in shown(pilot, "note")
        await press(pilot, "P")
        assert session.store.document.pins() == ("A",)
        await press(pilot, "enter")
        assert session.store.document.get("training.seq_len") == "4096"
        assert session.store.document.pins() == ("A",), "what stands beside the plan stays"
        await press(pilot, "u", "u")
        assert session.store.document.pins() == ()
        assert isinstance(pilot.app.screen, RunScreen)


async def test_paused_or_out_of_sight_nothing_is_looked_at(
    make_app: MakeApp, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "LOOK_SECONDS", 0.02)
    async with make_app().run_test(size=USUAL) as pilot:
        await runs(pilot, ".")
        assert "paused" in pilot.app.screen.query_one("#curves").border_subtitle
        await pilot.pause(0.05)
        seen = engine.looks
        await pilot.pause(0.1)
        assert engine.looks == seen
        await press(pilot, "+")
        await once(pilot, lambda: "step 20" in shown(pilot, "curves"))
        assert "the newest 50 %, paused" in pilot.app.screen.query_one("#curves").border_subtitle
        await press(pilot, ".")
        await once(pilot, lambda: engine.looks > seen + 2)
        await press(pilot, "escape")
        await pilot.pause(0.05)
        seen = engine.looks
        await pilot.pause(0.1)
        assert engine.looks == seen


async def test_without_any_run_it_says_how_to_start_one(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.run_rows = ()
    async with make_app().run_test(size=USUAL) as pilot:
        await runs(pilot, "enter", "P", "k", "j", "G")
        assert "capacity-tui monitor --plan PLAN -- torchrun train.py" in shown(pilot, "runs")


@pytest.mark.parametrize("size", [HUGE, NARROW, (40, 12)])
async def test_every_panel_can_be_read_at_any_size(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app(ascii_only=size == NARROW).run_test(size=size) as pilot:
        await runs(pilot)
        for key, panel, given in (
            ("2", "curves", "step time"),
            ("3", "usage", "61.2/79.6 GiB"),
            ("4", "events", "why: clocks"),
            ("1", "runs", "llama-3-8b"),
        ):
            await press(pilot, key)
            widget = pilot.app.screen.query_one(f"#{panel}")
            assert widget.display
            assert widget.has_focus
            assert given in shown(pilot, panel)
            assert widget.region.right <= size[0]
            assert widget.region.bottom < size[1]
        await press(pilot, "4", "z")
        assert "memory grows" in shown(pilot, "events")
        assert pilot.app.screen.query_one("#events").region.width == size[0]
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunScreen)


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (("space", "r"), ["run-step-time.svg", "run-loss.svg", "run-tokens-s.svg"]),
        (("space", "s"), ["scale-time-over-devices.svg", "scale-cost-over-devices.svg"]),
        (("space", "s", "4"), ["scale-size-over-samples.svg", "scale-occurrences-over-rank-node0.svg"]),
        (("space", "l"), ["cluster-nodes.svg"]),
        (("m",), ["machine-load.svg"]),
        (("v",), ["plan-memory.svg"]),
    ],
)
async def test_what_a_view_draws_is_written_as_pictures(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], names: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        await settle(pilot)
        for place, name in enumerate(names):
            await press(pilot, "E", *["down"] * (2 * place), "enter")
            await once(pilot, lambda name=name: (tmp_path / name).exists())
            assert ET.fromstring((tmp_path / name).read_text()).tag.endswith("svg")
        # What was written is said where the picture was shown, or once that is closed.
        await press(pilot, *["escape"] * isinstance(app.screen, TextDialog))
        assert names[-1] in shown(pilot, "note")


async def test_a_picture_is_previewed_in_words(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "space", "s")
        await settle(pilot)
        await press(pilot, "E")
        preview = shown(pilot, "export-text")
        assert "time over devices" in preview
        assert "<svg" not in preview
