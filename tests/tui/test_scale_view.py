"""The view of scaling: rows as they come, taking one over into the plan, and the pictures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_engine import FakeEngine
from fake_scaling import scaled_plans
from flow import once, press, settle, shown
from textual.pilot import Pilot

from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.shown.scale import STRONG
from capacity_tui.tui.text import to_ascii
from capacity_tui.tui.views.scale.corpus import Devices
from capacity_tui.tui.views.scale.screen import ScaleScreen

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def scale(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await press(pilot, "space", "s", *keys)


def rows(pilot: Pilot[None]) -> list[str]:
    return shown(pilot, "devices").splitlines()[1:]


def devices(pilot: Pilot[None]) -> str:
    return pilot.app.session.store.document.get("hardware.devices")


async def until(pilot: Pilot[None], count: int) -> None:
    """Wait for so many rows while the others are held up."""
    await once(pilot, lambda: len(rows(pilot)) >= count)


async def test_every_count_has_a_row_with_knee_and_verdict(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await scale(pilot)
        assert len(rows(pilot)) == 5
        assert "✗" in rows(pilot)[0]
        knee = next(row for row in rows(pilot) if "knee 4" in row)
        assert "16 h" in knee
        assert "85 %" in knee
        assert "▇▇▇▇▇▇▇░" in knee
        assert "The knee is at 4. Communication dominates from 16 devices on." in shown(pilot, "remarks")
        assert "strong: the same batch for all" in pilot.app.screen.query_one("#devices").border_subtitle


def test_of_counts_that_do_not_fit_the_first_and_the_last_are_shown() -> None:
    is_open = threading.Event()
    is_open.set()
    *_, plan = scaled_plans(STRONG, 16, is_open)
    unfit = (replace(row, verdict=Verdict.DOES_NOT_FIT) if row.devices < 16 else row for row in plan.rows)
    panel = Devices()
    panel.plan = replace(plan, rows=tuple(unfit))
    assert [row.devices for row in panel.rows] == [1, 8, 16]
    assert "2 more do not fit" in panel.edge()
    panel.cursor = 1
    assert panel.row is not None
    assert panel.row.devices == 8


async def test_taking_a_row_is_one_edit_that_undo_takes_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        before = devices(pilot)
        await scale(pilot, "G", "enter")
        assert devices(pilot) == "16"
        assert pilot.app.session.store.edits == 1
        assert "plan 16" in next(row for row in rows(pilot) if "▌" in row)
        await press(pilot, "enter")
        assert "that is the plan already" in shown(pilot, "note")
        await press(pilot, "u")
        assert devices(pilot) == before
        assert isinstance(pilot.app.screen, ScaleScreen)


async def test_pinning_a_row_puts_it_beside_the_plan(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await scale(pilot, "G", "P")
        assert "is pinned beside the plan" in shown(pilot, "note")
        assert pilot.app.session.store.document.pins() == ("A",)
        assert devices(pilot) != "16"


async def test_rows_come_one_by_one_and_old_ones_stay_dimmed(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await scale(pilot)
        engine.scaling.clear()
        await pilot.press("tab")
        await pilot.pause(0.1)
        table = pilot.app.screen.query_one("#devices")
        assert len(rows(pilot)) == 5
        assert "value" not in {span.role for line in table.lines[1:] for span in line.spans}
        await pilot.press("enter")
        assert pilot.app.session.store.edits == 0
        engine.scaling.set()
        await settle(pilot)
        assert "weak: the same batch for each device" in table.border_subtitle
        assert "99 %" in rows(pilot)[1]
        assert "value" in {span.role for line in table.lines[1:] for span in line.spans}


async def test_the_first_rows_are_there_before_the_last(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.scaling.clear()
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("space", "s")
        await pilot.pause(0.1)
        assert rows(pilot) == []
        engine.scaling.set()
        await until(pilot, 5)


async def test_the_plan_is_followed_while_the_view_is_shown(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await scale(pilot)
        pilot.app.session.change("hardware.devices", "2")
        await settle(pilot)
        assert "plan 2" in rows(pilot)[1]


@pytest.mark.parametrize("size", [WIDE, USUAL, NARROW, TINY])
async def test_time_efficiency_and_cost_are_in_sight_at_any_size(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await scale(pilot)
        head, *others = shown(pilot, "devices").splitlines()
        for title in ("devices", "time", "efficiency", "cost"):
            assert title in head or size == TINY
        assert all(len(line) <= size[0] for line in (head, *others))
        await press(pilot, "v")
        assert "time over devices" in shown(pilot, "growth")
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ScaleScreen)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, ScaleScreen)


async def test_pictures_mark_the_row_under_the_cursor_in_ascii_too(make_app: MakeApp) -> None:
    async with make_app(ascii_only=True).run_test(size=WIDE) as pilot:
        await scale(pilot, "g", "j")
        axis = pilot.app.screen.query_one("#growth").lines[-1]
        assert next(span.text for span in axis.spans if span.role == "key") == "2"
        drawn = to_ascii(shown(pilot, "growth"))
        for words in ("cost over devices", "knee", "other prices", "@"):
            assert words in drawn
        assert "?" not in drawn
