"""What a person does to the plan, and what is shown then."""

from __future__ import annotations

from collections.abc import Callable

from flow import press, row, settle, shown, type_text
from textual.widgets import Input

from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def test_step_changes_numbers_and_undo_brings_them_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        before = row(pilot, "plans", "activations")
        await press(pilot, "down", "+")
        assert "8192" in row(pilot, "config", "Sequence")
        assert "was 4096" in shown(pilot, "config")
        assert row(pilot, "plans", "activations") != before
        assert "1 change" in shown(pilot, "answer")
        await press(pilot, "u")
        assert row(pilot, "plans", "activations") == before
        assert "change" not in shown(pilot, "answer")
        await press(pilot, "ctrl+r")
        assert "8192" in row(pilot, "config", "Sequence")


async def test_every_step_is_undone_by_itself(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "+", "+")
        assert "32768" in row(pilot, "config", "Sequence")
        await press(pilot, "u")
        assert "16384" in row(pilot, "config", "Sequence")
        await press(pilot, "u", "u")
        assert "4096" in row(pilot, "config", "Sequence")


async def test_what_is_refused_is_told_in_full_on_a_narrow_screen(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(24, 12)) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down", "e")
        await type_text(pilot, "9999")
        lines = pilot.app.screen.query_one("Prompt Lines").lines
        assert "allowed 1–1024" in " ".join(line.plain.strip() for line in lines)
        assert max(len(line.plain) for line in lines) <= 24
        assert pilot.app.screen.query_one("Prompt Lines").size.height == len(lines) > 1


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
        assert "no match for squq" in shown(pilot, "note")


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
        assert "WHAT-IF · not this machine" in shown(pilot, "tabs")


async def test_simulated_hardware_is_marked_until_it_is_left(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "H", *"a100", "enter")
        assert "WHAT-IF · not this machine" in shown(pilot, "tabs")
        assert "a100-sxm-80gb  80 GiB" in shown(pilot, "hardware")
        await press(pilot, "1", "backspace")
        assert "WHAT-IF" not in shown(pilot, "tabs")


async def test_keys_of_the_configuration_act_nowhere_else(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down")
        for number in "1345":
            await press(pilot, number, "+", "-", "=", "e", "asterisk")
            assert len(pilot.app.screen_stack) == 1
            assert not pilot.app.screen.query_one("Prompt").has_class("-open")
        await press(pilot, "2", "h", "l")
        assert len(pilot.app.screen_stack) == 1
        assert "change" not in shown(pilot, "answer")
        assert "▌Sequence" in shown(pilot, "config")


async def test_other_hardware_says_that_the_number_of_devices_stays(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "H", *"a100", "enter")
        assert "8 devices, unchanged; 1xa100-sxm-80gb would be one" in shown(pilot, "note")
        await press(pilot, "H", *"4xa100", "enter")
        assert "as before" not in shown(pilot, "note")


async def test_what_was_typed_and_left_is_offered_again_until_it_is_taken(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "down", "e", *"16", "escape", "e")
        assert app.screen.query_one("Prompt Input", Input).value == "16"
        await press(pilot, "8", "enter")
        assert "8" in row(pilot, "config", "Micro batch")
        await press(pilot, "e")
        assert app.screen.query_one("Prompt Input", Input).value == "8"
        await press(pilot, "escape", "i", *"lora 4090", "escape", "i")
        assert app.screen.query_one("#start Input", Input).value == "lora 4090"
        await press(pilot, "escape", "H", *"h100", "escape", "H")
        assert app.screen.query_one(".dialog Input", Input).value == "h100"
