"""What a person does on the plan screen, and what is shown then."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from flow import plan_screen, press, row, settle, shown, type_text

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.widgets.panel import Panel

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def test_start_shows_plan_modes_machine_reason_and_sensors(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "H100 SXM  79.6 GiB" in shown(pilot, "hardware")
        assert "detected" in shown(pilot, "hardware")
        assert "n/a (not mounted)" in shown(pilot, "hardware")
        assert "auto → 2" in row(pilot, "config", "Micro batch")
        assert row(pilot, "plans", "verdict").split() == ["verdict", "✓", "fits", "✓", "fits", "!", "tight"]
        assert "micro_batch × seq_len" in shown(pilot, "why")
        assert "GPU" in shown(pilot, "live")
        assert "llama-3-8b" in shown(pilot, "header")


async def test_first_frame_says_that_hardware_is_being_detected(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.gate.clear()
    async with make_app().run_test(size=WIDE) as pilot:
        assert "detecting…" in shown(pilot, "hardware")
        engine.gate.set()
        await settle(pilot)
        assert "detecting…" not in shown(pilot, "hardware")


async def test_step_changes_numbers_and_undo_brings_them_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        before = row(pilot, "plans", "activations")
        await press(pilot, "down", "+")
        assert "8192" in row(pilot, "config", "Sequence")
        assert "was 4096" in shown(pilot, "config")
        assert row(pilot, "plans", "activations") != before
        assert "1 change" in shown(pilot, "header")
        await press(pilot, "u")
        assert row(pilot, "plans", "activations") == before
        assert "change" not in shown(pilot, "header")
        await press(pilot, "ctrl+r")
        assert "8192" in row(pilot, "config", "Sequence")


async def test_steps_in_quick_succession_are_one_undo(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "+", "+")
        assert "32768" in row(pilot, "config", "Sequence")
        await press(pilot, "u")
        assert "4096" in row(pilot, "config", "Sequence")


async def test_typed_value_is_checked_and_refused_in_place(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down", "e")
        await type_text(pilot, "9999")
        assert "allowed 1–1024" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        await type_text(pilot, "8")
        assert "8" in row(pilot, "config", "Micro batch")
        await press(pilot, "backspace")
        assert "auto → 2" in row(pilot, "config", "Micro batch")


async def test_keys_typed_ahead_of_an_opening_input_do_nothing_else(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "/", *"squq", "enter")
        assert pilot.app.is_running
        assert "nothing called squq" in shown(pilot, "footer")


async def test_find_walks_through_matches(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "/", *"batch", "enter")
        assert "▌Micro batch" in shown(pilot, "config")
        await press(pilot, "n")
        assert "▌Global batch" in shown(pilot, "config")
        await press(pilot, "N")
        assert "▌Micro batch" in shown(pilot, "config")


async def test_picker_filters_and_changes_the_model(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", *"mix", "enter")
        assert "mixtral-8x7b" in row(pilot, "config", "Model")


async def test_each_question_is_painted_anew(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        for key, question in (("E", "Export"), ("S", "Save"), ("/", "Find"), ("E", "Export")):
            await press(pilot, key)
            assert f"{question}&#160;" in pilot.app.export_screenshot()
            await press(pilot, "escape")


async def test_devices_typed_with_their_number_are_taken_as_typed(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "H", *"8xa100", "enter")
        assert "SIM 8xa100: 1 GPU here" in shown(pilot, "header")


async def test_simulated_hardware_is_marked_until_it_is_left(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "H", *"a100", "enter")
        assert "SIM a100-sxm-80gb: 1 GPU here" in shown(pilot, "header")
        assert "a100-sxm-80gb  80 GiB" in shown(pilot, "hardware")
        await press(pilot, "1", "backspace")
        assert "SIM" not in shown(pilot, "header")


async def test_deltas_count_from_the_chosen_baseline(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert row(pilot, "plans", "tokens/s").split()[-2:] == ["+52", "%"]
        await press(pilot, "3", "l", "x")
        assert "-34 %" in row(pilot, "plans", "tokens/s")
        await press(pilot, "b", "2", "down", "+")
        assert "+100 %" in row(pilot, "plans", "activations")


async def test_explanation_follows_row_and_column(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "j", "j", "l")
        assert shown(pilot, "why").startswith("optimizer (extreme)")
        await press(pilot, "enter", "enter")
        dialog = pilot.app.screen.query_one("TextLines").lines
        assert any("Korthikanti" in line.plain for line in dialog)


async def test_stale_answer_is_dropped(make_app: MakeApp, engine: FakeEngine) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        engine.gate.clear()
        await pilot.press("down", "plus", "plus", "plus")
        await pilot.pause(0.1)
        assert "old numbers" in shown(pilot, "plans")
        compared = engine.compared
        engine.gate.set()
        await settle(pilot)
        assert "128.0 GiB" in row(pilot, "plans", "activations")
        assert engine.compared - compared <= 2


async def test_failed_estimate_keeps_old_numbers_and_says_why(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", *"broken", "enter")
        await pilot.pause(0.1)
        assert "✗ the model has no layers" in shown(pilot, "plans")
        assert "choose another model" in shown(pilot, "plans")
        assert "46.0 GiB" in row(pilot, "plans", "peak / GPU")
        await press(pilot, "!")
        assert "the model has no layers" in pilot.app.screen.query_one("TextLines").lines[0].plain
        await press(pilot, "escape", "u")
        assert "✗" not in shown(pilot, "plans")


async def test_plan_that_does_not_fit_says_what_is_missing(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "+", "+")
        assert "✗ does not fit" in shown(pilot, "plans")
        assert "needs 270.0 GiB, a device has 80.0 GiB" in shown(pilot, "plans")
        assert "shard the optimizer: saves 30 GiB" in shown(pilot, "plans")


async def test_save_export_and_copy_name_their_files(make_app: MakeApp, own_folders: Path) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "S", "enter")
        saved = own_folders / "config" / "plans" / "llama-3-8b.yaml"
        assert "seq_len: 8192" in saved.read_text()
        assert str(saved) in shown(pilot, "footer")
        await press(pilot, "+", "s")
        assert "seq_len: 16384" in saved.read_text()
        await press(pilot, "E")
        await type_text(pilot, "out")
        exported = own_folders / "out.yaml"
        assert exported.read_text().startswith("# balanced")
        assert str(exported) in shown(pilot, "footer")
        await press(pilot, "y")
        assert app.clipboard.startswith("# balanced")
        assert "copied.yaml" in shown(pilot, "footer")
        await press(pilot, "Y")
        assert "verdict" in (own_folders / "config" / "copied.txt").read_text(encoding="utf-8")


async def test_existing_file_is_replaced_only_when_asked_twice(make_app: MakeApp, own_folders: Path) -> None:
    (own_folders / "mine.yaml").write_text("precious")
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "E")
        await type_text(pilot, "mine")
        assert (own_folders / "mine.yaml").read_text() == "precious"
        assert "exists" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        await press(pilot, "enter")
        assert (own_folders / "mine.yaml").read_text().startswith("# balanced")


async def test_folder_is_refused_and_the_prompt_stays(make_app: MakeApp, own_folders: Path) -> None:
    (own_folders / "sub.d").mkdir()
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "E")
        await type_text(pilot, "sub.d")
        assert "is a folder" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain


async def test_opening_is_undone_like_any_edit(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "o", *"finetune", "enter")
        assert "finetune-8b" in row(pilot, "config", "Model")
        assert "u brings the plan before back" in shown(pilot, "footer")
        assert "change" not in shown(pilot, "header")
        await press(pilot, "u")
        assert "llama-3-8b" in row(pilot, "config", "Model")
        assert "8192" in row(pilot, "config", "Sequence")
        assert "1 change" in shown(pilot, "header")
        await press(pilot, "u")
        assert "4096" in row(pilot, "config", "Sequence")
        await press(pilot, "u")
        assert "nothing to undo" in shown(pilot, "footer")
        await press(pilot, "ctrl+r", "ctrl+r")
        assert "finetune-8b" in row(pilot, "config", "Model")


async def test_quitting_warns_about_a_plan_that_another_was_opened_over(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "o", *"finetune", "enter", "q")
        assert "q once more quits" in shown(pilot, "footer")
        assert app.is_running


async def test_quitting_warns_once_about_unsaved_changes(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "q")
        assert "q once more quits" in shown(pilot, "footer")
        assert app.is_running
        await pilot.press("q")
    assert app.return_code == 0


async def test_quit_does_not_wait_for_the_sensors(make_app: MakeApp) -> None:
    started = 0.0
    async with make_app(settings={"live_seconds": 30.0}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        started = time.perf_counter()
        await pilot.press("q")
    assert time.perf_counter() - started < 20.0  # the sampler waits for 30


async def test_values_keep_their_units_beside_them(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.pause(0.1)
        assert "\N{NO-BREAK SPACE}GiB" in pilot.app.export_screenshot().replace("&#160;", "\N{NO-BREAK SPACE}")
        assert "\\xa0" not in pilot.app.export_screenshot()


async def test_pause_stops_sampling(make_app: MakeApp) -> None:
    async with make_app(settings={"live_seconds": 0.05}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "space")
        before = shown(pilot, "live")
        await pilot.pause(0.2)
        assert shown(pilot, "live") == before
        await press(pilot, "space")
        await pilot.pause(0.2)
        assert shown(pilot, "live") != before


async def test_rate_of_the_graphs_has_a_floor(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "]", "]", "]", "]")
        assert plan_screen(app).sensors.seconds == 0.5
        await press(pilot, "[")
        assert plan_screen(app).sensors.seconds == 1.0


async def test_help_lists_every_action_with_its_name(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "?")
        text = "\n".join(line.plain for line in pilot.app.screen.query_one("TextLines").lines)
        assert "edit.undo" in text
        assert "Count deltas from this column" in text


async def test_palette_offers_actions_and_models(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+p", *"mistral")
        await pilot.pause(0.3)
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


async def test_wrong_keymap_is_reported_and_the_default_keys_stay(make_app: MakeApp) -> None:
    async with make_app(settings={"keys": {"edit.und": "f5"}}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "edit.und" in shown(pilot, "footer")
        await press(pilot, "down", "+")
        assert "8192" in row(pilot, "config", "Sequence")


@pytest.mark.parametrize("size", [WIDE, (100, 30), USUAL, NARROW, (60, 40), TINY, (20, 5)])
async def test_every_panel_can_be_reached_and_shows_something_at_any_size(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        for number in "12345":
            await press(pilot, number)
            panel = pilot.app.focused
            assert isinstance(panel, Panel)
            assert int(number) == panel.NUMBER
            assert panel.region.height >= 3
            assert shown(pilot, panel.TITLE.lower()).strip()
            assert panel.region.right <= size[0]
            assert panel.region.bottom <= size[1]


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
            await pilot.resize_terminal(*size)
            await settle(pilot)
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
        assert "? lists all keys" in shown(pilot, "hint")
        await press(pilot, "escape")
        assert not pilot.app.screen.query_one("#hint").display
        assert "hint = false" in (own_folders / "config" / "settings.toml").read_text()


async def test_keys_of_the_configuration_act_nowhere_else(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down")
        for number in "1345":
            await press(pilot, number, "+", "-", "=", "e", "shift+right")
            assert len(pilot.app.screen_stack) == 1
            assert not pilot.app.screen.query_one("Prompt").has_class("-open")
        await press(pilot, "2", "h", "l")
        assert len(pilot.app.screen_stack) == 1
        assert "change" not in shown(pilot, "header")
        assert "▌Sequence" in shown(pilot, "config")


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
        assert pilot.app.screen.query_one("#hint").display


async def test_other_hardware_says_that_the_number_of_devices_stays(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "H", *"a100", "enter")
        assert "8 devices, as before; 1xa100-sxm-80gb would be one" in shown(pilot, "footer")
        await press(pilot, "H", *"4xa100", "enter")
        assert "as before" not in shown(pilot, "footer")
