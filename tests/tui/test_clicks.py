"""What the mouse does: views, keys of the footer, figures of the card, fields and lists."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flow import plan_screen, press, settle, shown
from textual.pilot import Pilot
from textual.widgets import Input

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.view_screen import ViewScreen
from capacity_tui.tui.widgets.lines import Lines

MakeApp = Callable[..., CapacityApp]
SIZES = ((120, 40), (80, 24), (60, 20), (40, 20))


async def click(pilot: Pilot[None], widget: str, text: str) -> None:
    """Click where a text stands in a widget."""
    lines = pilot.app.screen.query_one(f"#{widget}", Lines)
    y, plain = next((y, line.plain) for y, line in enumerate(lines.in_sight) if text in line.plain)
    frame = (lines.outer_size.height - lines.size.height) // 2
    await pilot.click(f"#{widget}", offset=(plain.index(text) + frame, y + frame))
    await settle(pilot)


def view(pilot: Pilot[None]) -> str:
    screen = pilot.app.screen
    return screen.VIEW if isinstance(screen, ViewScreen) else ""


@pytest.mark.parametrize("size", SIZES)
async def test_views_are_reached_by_their_tabs_at_every_width(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        for name, key in (("find", "f"), ("scale", "s"), ("plan", "p")):
            tabs = shown(pilot, "tabs")
            await click(pilot, "tabs", name.capitalize() if name.capitalize() in tabs else f" {key}")
            assert view(pilot) == name


async def test_keys_of_the_footer_can_be_clicked(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "j")
        await click(pilot, "footer", "step")
        assert "1 change" in shown(pilot, "answer")
        await click(pilot, "footer", "views")
        await click(pilot, "footer", "Find")
        assert view(pilot) == "find"


async def test_figures_of_the_card_are_explained(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "space", "f")
        await click(pilot, "answer", "GiB")
        assert view(pilot) == "plan"
        assert plan_screen(pilot.app).current.TITLE == "Why"


async def test_limits_that_are_missed_lead_to_what_would_hold_them(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j", "+", "+", "+", "+")
        await click(pilot, "answer", "does not fit")
        assert plan_screen(pilot.app).current.TITLE == "Advice"


async def test_a_second_click_on_a_field_asks_for_its_value(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await click(pilot, "config", "Sequence")
        assert not pilot.app.screen.query("Prompt.-open")
        await click(pilot, "config", "Sequence")
        assert pilot.app.screen.query("Prompt.-open")
        assert pilot.app.screen.query_one("Prompt Input", Input).has_focus


async def test_the_last_edit_is_told_with_what_it_did(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j", "+")
        said = shown(pilot, "note")
        assert "→" in said
        assert "%" in said or "×" in said
