"""Help, palette, themes and keys, and what is shown at any size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flow import offered, press, resize, row, settle, shown
from textual import events

from capacity_tui.tui.actions import PANELS
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.widgets.panel import Panel

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def test_help_lists_every_action_with_its_name(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "?")
        text = "\n".join(line.plain for line in pilot.app.screen.query_one("TextLines").lines)
        assert "edit.undo" in text
        assert "Use this column as the baseline" in text


async def test_palette_offers_actions_and_models(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+p", *"mistral")
        await offered(pilot)
        await press(pilot, "enter")
        assert "mistral-7b" in row(pilot, "config", "Model")


async def test_every_bundled_theme_can_be_applied(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        seen = []
        for _ in range(5):
            await press(pilot, "t")
            seen.append(app.theme)
        assert len(set(seen)) == 5
        assert 'theme = "dark"' in (app.settings, Path("config/settings.toml").read_text())[1]


async def test_own_keys_replace_the_default_ones(make_app: MakeApp) -> None:
    app = make_app(settings={"keys": {"value.more": "v", "edit.undo": "f5"}})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "v")
        assert "8192" in row(pilot, "config", "Sequence")
        await press(pilot, "u")
        assert "8192" in row(pilot, "config", "Sequence")
        await press(pilot, "f5")
        assert "4096" in row(pilot, "config", "Sequence")


async def test_hints_and_messages_name_own_keys(make_app: MakeApp) -> None:
    app = make_app(settings={"keys": {"pin.toggle": "B", "pin.rename": "f6"}})
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "B")
        assert "B pin" in str(app.screen.query_one("#plans", Panel).border_subtitle)
        assert "f6 renames it, B on it unpins it" in shown(pilot, "note")


async def test_wrong_keymap_is_reported_and_the_default_keys_stay(make_app: MakeApp) -> None:
    async with make_app(settings={"keys": {"edit.und": "f5"}}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "edit.und" in shown(pilot, "note")
        await press(pilot, "down", "+")
        assert "8192" in row(pilot, "config", "Sequence")


@pytest.mark.parametrize("size", [WIDE, (100, 30), USUAL, NARROW, (60, 40), TINY, (20, 5)])
async def test_every_panel_can_be_reached_and_shows_something_at_any_size(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        for number in map(str, range(1, [*PANELS.values()].count("plan") + 1)):
            await press(pilot, number)
            panel = pilot.app.focused
            assert isinstance(panel, Panel)
            assert int(number) == panel.NUMBER
            assert panel.region.height >= 3
            assert shown(pilot, panel.TITLE.lower()).strip()
            assert panel.region.right <= size[0]
            assert panel.region.bottom <= size[1]


@pytest.mark.parametrize("size", [WIDE, TINY, (20, 5)])
async def test_page_keys_in_the_palette_make_no_mistake_at_any_size(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+p", "pagedown", "pageup", "pagedown")
        await pilot.resize_terminal(20, 5)
        await press(pilot, "pagedown", "pageup", "escape")
        await settle(pilot)
        assert "internal error" not in shown(pilot, "note")


async def test_a_click_on_the_frame_of_a_panel_moves_nothing(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        for number in map(str, range(1, [*PANELS.values()].count("plan") + 1)):
            await press(pilot, number)
            panel = pilot.app.focused
            assert isinstance(panel, Panel)
            before = panel.cursor
            for row_above in (0, -1, -40):
                panel.post_message(events.Click(panel, 2, row_above, 0, 0, 1, False, False, False))
            await pilot.pause()
            assert panel.cursor == before
        assert "internal error" not in shown(pilot, "note")


async def test_folded_panels_show_their_summaries_in_ascii_too(make_app: MakeApp) -> None:
    async with make_app(ascii_only=True).run_test(size=NARROW) as pilot:
        await settle(pilot)
        assert "balanced" in shown(pilot, "plans")
        assert pilot.app.screen.query_one("#plans").outer_size.height == 1


async def test_narrow_screen_shows_one_plan_and_summaries(make_app: MakeApp) -> None:
    async with make_app().run_test(size=NARROW) as pilot:
        await settle(pilot)
        assert "balanced ✓ fits" in shown(pilot, "plans")
        await press(pilot, "3", "l")
        assert "extreme" in shown(pilot, "plans")


async def test_resizing_keeps_cursor_and_numbers(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down")
        for size in (TINY, WIDE, USUAL):
            await resize(pilot, size)
            assert "▌Micro batch" in shown(pilot, "config")
            assert max(len(line) for line in shown(pilot, "config").splitlines()) <= size[0]


async def test_ascii_screen_has_no_other_characters(make_app: MakeApp) -> None:
    app = make_app(ascii_only=True)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3")
        picture = app.export_screenshot()
        text = picture[picture.index('-matrix">') :]
        text = text.replace("&#160;", " ")
        assert text.isascii()


async def test_no_color_uses_the_terminals_own_theme(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert app.theme == "capacity-ansi"
        assert app.native_ansi_color


async def test_hint_of_the_first_run_goes_for_good(make_app: MakeApp, own_folders: Path) -> None:
    async with make_app(settings={"hint": True}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "1 of 5" in shown(pilot, "note")
        # What it names is a key of the plan alone.
        await press(pilot, "space", "s")
        assert "1 of 5" not in shown(pilot, "note")
        await press(pilot, "escape")
        assert "1 of 5" in shown(pilot, "note")
        await press(pilot, "escape")
        assert "of 5" not in shown(pilot, "note")
        assert "hint = false" in (own_folders / "config" / "settings.toml").read_text()


async def test_footer_names_keys_of_the_panel_and_says_that_there_are_more(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        assert "+/- step" in shown(pilot, "footer")
        for must in ("? help", "q quit", "…"):
            assert must in shown(pilot, "footer")
        await press(pilot, "3")
        assert "step" not in shown(pilot, "footer")


async def test_escape_shows_all_panels_again(make_app: MakeApp) -> None:
    async with make_app(settings={"hint": True}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "z")
        assert not pilot.app.screen.query_one("#plans").display
        await press(pilot, "escape")
        assert pilot.app.screen.query_one("#plans").display
        assert "1 of 5" in shown(pilot, "note")


async def test_the_guided_start_goes_on_with_each_key_that_was_tried_and_ends_for_good(
    make_app: MakeApp, own_folders: Path
) -> None:
    async with make_app(settings={"hint": True}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        for number, keys in enumerate((["down", "plus"], ["a"], ["space", "f"], ["space", "r"]), start=2):
            await press(pilot, *keys)
            await press(pilot, "escape" if "space" in keys else "down")
            assert f"{number} of 5" in shown(pilot, "note")
        await press(pilot, "E", "escape", "down")
        assert "of 5" not in shown(pilot, "note")
        assert "hint = false" in (own_folders / "config" / "settings.toml").read_text()
