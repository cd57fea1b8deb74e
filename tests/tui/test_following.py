"""Panel 4 goes on: numbers are followed to those they were made from; pictures; and the menu of exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flow import open_exports, plan_screen, press, settle, shown, type_text

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.dialogs.export import ExportMenu
from capacity_tui.tui.views.dialogs.help import TextDialog
from capacity_tui.tui.widgets.lines import Lines

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL = (120, 40), (80, 24)


@pytest.mark.parametrize("size", [WIDE, USUAL])
async def test_a_number_is_followed_and_left_again(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "3", "enter", "down", "down", "enter")
        assert "micro_batch = memory / 4 GiB" in shown(pilot, "why")
        await press(pilot, "G", "g", "down", "down", "down", "enter")
        assert "not computed" in shown(pilot, "why")
        await press(pilot, "backspace")
        assert "micro_batch = memory / 4 GiB" in shown(pilot, "why")
        await press(pilot, "escape")
        assert "× 4 MiB" in shown(pilot, "why")
        # With nothing to go back to, the key does what it does everywhere.
        await press(pilot, "z", "escape")
        assert not plan_screen(pilot.app).has_class("-zoom")


async def test_another_number_begins_anew(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "enter", "down", "down", "enter", "3", "down")
        assert "× 4 MiB" in shown(pilot, "why")
        assert "▸ micro_batch" in shown(pilot, "why")


async def test_a_line_without_a_number_opens_the_whole(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "enter", "enter")
        assert isinstance(pilot.app.screen, TextDialog)


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_pictures_are_shown_in_the_terminals_own_characters(make_app: MakeApp, ascii_only: bool) -> None:
    async with make_app(ascii_only=ascii_only).run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "v")
        assert isinstance(pilot.app.screen, TextDialog)
        text = "\n".join(line.plain for line in pilot.app.screen.query_one(Lines).in_sight)
        assert "80.0 GiB" in text
        assert ("#" in text) == ascii_only
        assert text.isascii() or not ascii_only


async def test_the_menu_shows_copies_and_writes(make_app: MakeApp, own_folders: Path) -> None:
    app = make_app()
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await open_exports(pilot)
        await press(pilot, "down")
        assert isinstance(app.screen, ExportMenu)
        assert "capacity-tui plan --model it" in shown(pilot, "export-text")
        await press(pilot, "y")
        assert app.clipboard == "capacity-tui plan --model it\n"
        assert (own_folders / "config" / "llama-3-8b-balanced.sh").exists()
        assert "written to" in shown(pilot, "note")
        await open_exports(pilot)
        await press(pilot, "G", "enter")
        await type_text(pilot, "run")
        assert (own_folders / "run" / "run.yaml").read_text() == "a: 1\n"
        (own_folders / "run" / "run.yaml").write_text("mine")
        await open_exports(pilot)
        await press(pilot, "G", "enter")
        await type_text(pilot, "run")
        assert (own_folders / "run" / "run.yaml").read_text() == "mine"
        assert "enter again replaces" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        await press(pilot, "enter")
        assert (own_folders / "run" / "run.yaml").read_text() == "a: 1\n"


async def test_leaving_the_menu_writes_nothing(make_app: MakeApp, own_folders: Path) -> None:
    before = set(own_folders.iterdir())
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "E", "escape")
        assert not isinstance(pilot.app.screen, ExportMenu)
    assert {path.name for path in set(own_folders.iterdir()) - before} <= {"config", "state"}
