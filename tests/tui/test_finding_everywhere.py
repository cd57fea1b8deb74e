"""`/` as one types, over all panels, and what `?` says of rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flow import plan_screen, press, row, settle, shown

from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]
WIDE = (120, 40)


@pytest.mark.parametrize("size", [WIDE, (80, 24), (60, 20)])
async def test_what_is_typed_is_found_at_once_in_any_panel(make_app: MakeApp, size: tuple[int, int]) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "/", *"zer")
        assert "▌ZeRO stage" in shown(pilot, "config")
        assert "ZeRO stage in Config, one of 3" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        await press(pilot, *["backspace"] * 3, *"optimizer")
        assert plan_screen(app).current.id == "config"
        await press(pilot, "enter", "n")
        assert app.focused.id == "plans"
        assert app.focused.row_key == "memory.parts.optimizer"
        await press(pilot, "N")
        assert app.focused.id == "config"


async def test_escape_goes_back_to_where_one_was(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "/", *"tokens/s")
        assert plan_screen(app).current.id == "plans"
        await press(pilot, "escape")
        assert app.focused.id == "config"
        assert "▌Sequence" in shown(pilot, "config")


async def test_a_figure_that_was_found_is_explained_and_a_field_edited_from_there(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "/", *"tokens/s", "enter")
        assert shown(pilot, "why").startswith("tokens/s")
        await press(pilot, "/", *"data par", "enter", "+")
        assert "16" in row(pilot, "config", "Data parallel")


async def test_nothing_found_stays_and_says_so(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "/", *"squq")
        assert "no match" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        assert "▌Sequence" in shown(pilot, "config")


async def test_help_begins_with_the_row_under_the_cursor(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "?")
        lines = app.screen.query_one("TextLines").lines
        assert [line.plain for line in lines[:2]] == ["peak / GPU", "Room used."]
        await press(pilot, "escape", "4", "?")
        assert app.screen.query_one("TextLines").lines[0].plain == "peak / GPU"
