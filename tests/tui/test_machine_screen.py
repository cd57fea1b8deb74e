"""Looking at this machine and measuring it, from the plan screen and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_engine import FakeEngine
from flow import once, plan_screen, press, settle, shown
from textual.pilot import Pilot

from capacity_tui.engine.errors import StorageError
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.machine.screen import MachineScreen

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, TINY = (120, 40), (80, 24), (40, 12)


def report(pilot: Pilot[None]) -> str:
    lines = pilot.app.screen.query_one("TextLines")
    return "\n".join(line.plain for line in lines.lines)


def in_sight(pilot: Pilot[None]) -> str:
    lines = pilot.app.screen.query_one("TextLines")
    return "\n".join(line.plain for line in lines.in_sight)


async def until(pilot: Pilot[None], text: str) -> None:
    """Wait for what the benchmarks say while they run."""
    await once(pilot, lambda: text in shown(pilot, "measuring"))


async def test_machine_screen_shows_facts_with_reasons_and_goes_back(make_app: MakeApp) -> None:
    for key in ("escape", ">"):
        async with make_app().run_test(size=USUAL) as pilot:
            await settle(pilot)
            await press(pilot, "m")
            assert "H100 SXM  79.6 GiB detected" in report(pilot)
            assert "Disk n/a (not mounted)" in report(pilot)
            assert "Predicted bottleneck for llama-3-8b" in report(pilot)
            assert "└─ GPU 0" in report(pilot)
            assert "B measure" in shown(pilot, "footer")
            assert "q quit" in shown(pilot, "footer")
            await press(pilot, key)
            assert pilot.app.screen is plan_screen(pilot.app)


async def test_report_scrolls_to_its_end_and_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "m", "G")
        assert "setting 59" in in_sight(pilot)
        assert "Facts:" not in in_sight(pilot)
        await press(pilot, "g", "j")
        assert "Now:" not in in_sight(pilot)
        await press(pilot, "k")
        assert "Now:" in in_sight(pilot)


async def test_topology_is_drawn_in_ascii_where_that_is_asked_for(make_app: MakeApp) -> None:
    async with make_app(ascii_only=True).run_test(size=TINY) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        assert "`- GPU 0" in report(pilot)


async def test_benchmarks_show_progress_and_end_in_the_report_and_the_estimates(
    make_app: MakeApp, engine: FakeEngine
) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        compared = engine.compared
        engine.measuring.clear()
        await pilot.press("B")
        await until(pilot, "last: memory triad 41.4 GB/s (34.7 GB/s – 44.6 GB/s)")
        assert "1 of 2 memory" in shown(pilot, "measuring")
        await pilot.press("B")
        engine.measuring.set()
        await settle(pilot)
        assert "measured: 2 figures saved" in shown(pilot, "measuring")
        assert "measured: CPU matrix product" in report(pilot)
        assert engine.compared == compared + 1
        await press(pilot, "escape")
        assert not pilot.app.session.store.is_stale


async def test_escape_stops_the_benchmarks_and_keeps_what_is_complete(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.measuring.clear()
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        await pilot.press("B")
        await until(pilot, "1 of 2")
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, MachineScreen)
        assert "stopped: 1 figure saved" in shown(pilot, "measuring")
        engine.measuring.set()
        await press(pilot, "B")
        assert "measured: 2 figures saved" in shown(pilot, "measuring")


async def test_headings_can_be_jumped_to_and_bars_say_how_full_the_machine_is(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        assert "░" in next(line for line in in_sight(pilot).splitlines() if line.strip().startswith("RAM"))
        for heading in ("Facts:", "Now:"):
            await press(pilot, "tab")
            assert in_sight(pilot).startswith(heading)


async def test_a_busy_machine_is_told_before_measuring_and_its_figures_are_not_used(
    make_app: MakeApp, engine: FakeEngine
) -> None:
    engine.busy, engine.doubt = 0.6, "others took 60 % of the processor"
    engine.measuring.clear()
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        await pilot.press("B")
        await until(pilot, "60 % busy")
        engine.measuring.set()
        await settle(pilot)
        assert "2 figures saved but not used: others took 60 %" in shown(pilot, "measuring")


async def test_measuring_says_what_it_changed_in_the_plan(
    make_app: MakeApp, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        monkeypatch.setattr(engine, "renewed", lambda document: document.edited("training.micro_batch", "1"))
        await press(pilot, "B")
        assert "the plan before: 22.6 h" in shown(pilot, "measuring")
        assert "now: 27.8 h" in shown(pilot, "measuring")


async def test_quitting_while_measuring_does_not_wait(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.measuring.clear()
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "m")
        await pilot.press("B")
        await until(pilot, "1 of 2")


async def test_results_that_cannot_be_kept_are_told(make_app: MakeApp, engine: FakeEngine) -> None:
    for error, text in ((StorageError("cannot write", hint="free some space"), "free some space"), (KeyError(), "!")):
        engine.unexpected = error
        async with make_app().run_test(size=WIDE) as pilot:
            await settle(pilot)
            await press(pilot, "m", "B")
            assert text in shown(pilot, "measuring")
            engine.unexpected = None
            await press(pilot, "B")
            assert "2 figures saved" in shown(pilot, "measuring")


async def test_edits_can_be_undone_after_measuring(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        store = pilot.app.session.store
        await press(pilot, "down", "+", "m", "B", "escape")
        assert store.edits == 1
        await press(pilot, "u")
        assert store.edits == 0
        assert not store.is_changed


async def test_palette_measures_only_where_the_machine_is_shown(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        offered = [command.title for command in pilot.app.get_system_commands(pilot.app.screen)]
        assert "Show and measure this machine" in offered
        assert "Measure this machine" not in offered
        await press(pilot, "m")
        commands = {command.title: command for command in pilot.app.get_system_commands(pilot.app.screen)}
        commands["Measure this machine"].callback()
        await settle(pilot)
        assert "2 figures saved" in shown(pilot, "measuring")
