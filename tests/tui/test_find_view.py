"""The view that searches: a question, rows that answer it, and taking them over into the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from flow import plan_screen, press, resize, settle, shown, type_text, until
from textual import events
from textual.pilot import Pilot

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.find.screen import FindScreen

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def find(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await press(pilot, "space", "f")
    await press(pilot, *keys)  # once the search is done


def rows(pilot: Pilot[None]) -> list[str]:
    return shown(pilot, "found").splitlines()[1:]


def value(pilot: Pilot[None], key: str) -> str:
    return pilot.app.session.store.document.get(key)


async def test_opening_the_view_searches_at_once_and_says_what_to_press(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot)
        assert "Goal cheapest" in shown(pilot, "question")
        assert "Hardware any" in shown(pilot, "question")
        assert "▌ ! ● a100-sxm-80gb   1" in rows(pilot)[0]
        assert "$24.24" in rows(pilot)[0]
        assert "15 408 tried, 12 fit, 1.20 s" in shown(pilot, "progress")
        assert "time 24.2 h (19.4 h – 29.1 h)" in shown(pilot, "details")
        assert "enter apply" in shown(pilot, "footer")
        assert "✓ fits" in shown(pilot, "answer")


async def test_taking_a_row_is_one_edit_that_undo_takes_back(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "j", "enter")
        assert value(pilot, "hardware.name") == "a100-sxm-80gb"
        assert value(pilot, "hardware.devices") == "2"
        assert "u undoes it" in shown(pilot, "note")
        assert "2×a100" in shown(pilot, "tabs")
        assert "▌ ✓ ● a100-sxm-80gb   2" in rows(pilot)[1]
        await press(pilot, "enter")
        assert "that is the plan already" in shown(pilot, "note")
        assert pilot.app.session.store.edits == 1
        await press(pilot, "u")
        assert value(pilot, "hardware.name") == "detected"
        assert engine.pace.searched == 1


async def test_rows_can_be_pinned_beside_the_plan(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await find(pilot, "P")
        assert "A is pinned beside the plan" in shown(pilot, "note")
        await press(pilot, "x", "x", "x")
        assert "3 marked" in shown(pilot, "progress")
        await press(pilot, "P", "escape")
        assert plan_screen(pilot.app).session.store.document.pins() == ("A", "B", "C", "D")
        assert pilot.app.session.store.edits == 2


async def test_a_limit_changes_the_rows_and_taking_it_back_does_too(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "l", "enter")
        await type_text(pilot, "4h")
        assert "Deadline 4h" in shown(pilot, "question")
        assert "a100-sxm-80gb   8" in rows(pilot)[0]
        await press(pilot, "backspace")
        assert "Deadline –" in shown(pilot, "question")
        assert "a100-sxm-80gb   1" in rows(pilot)[0]
        await press(pilot, "+", "+")
        assert "Deadline 24h" in shown(pilot, "question")
        assert "a100-sxm-80gb   2" in rows(pilot)[0]


async def test_a_limit_that_makes_no_sense_says_so_and_is_asked_on(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "l", "enter")
        await type_text(pilot, "soon")
        prompt = pilot.app.screen.query_one("Prompt")
        assert prompt.is_open
        assert "soon is not a time (such as 24h)" in prompt.query_one("Lines").lines[0].plain
        assert engine.pace.searched == 1
        await type_text(pilot, "7d")
        assert not prompt.is_open
        assert "Deadline 7d" in shown(pilot, "question")


async def test_a_limit_can_be_pasted(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "l", "enter")
        pilot.app.post_message(events.Paste("4h\nrm -rf /"))
        await press(pilot, "enter")
        assert "Deadline 4h" in shown(pilot, "question")


async def test_parts_with_choices_are_picked_and_stepped(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "enter", *"fast", "enter")
        assert "Goal fastest" in shown(pilot, "question")
        assert "h100-sxm-80gb   8" in rows(pilot)[0]
        await press(pilot, "-")
        assert "Goal cheapest" in shown(pilot, "question")
        await press(pilot, "l", "l", "l", "enter", *"l4", "enter")
        assert all("l4 " in row for row in rows(pilot))


async def test_rows_are_sorted_by_each_column_in_turn(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, *"ssssss")
        assert "by time" in shown(pilot, "progress")
        assert "h100-sxm-80gb   8" in rows(pilot)[0]
        await press(pilot, "S")
        assert "l4              1" in rows(pilot)[0]
        await press(pilot, "s", "s", "s")
        assert "by goal" in shown(pilot, "progress")


async def test_filter_works_while_it_is_typed_and_escape_takes_it_away(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "/", *"h100")
        assert len(rows(pilot)) == 4
        await press(pilot, "escape")
        assert len(rows(pilot)) > 4
        await press(pilot, "/", *"h100", "enter")
        assert "with 'h100'" in shown(pilot, "progress")
        await press(pilot, "escape")
        assert len(rows(pilot)) > 4
        await press(pilot, "/", *"zzz", "enter")
        assert "no row matches 'zzz'" in shown(pilot, "found")
        await press(pilot, "escape", "/", *"front", "enter")
        assert all("●" in row for row in rows(pilot))
        await press(pilot, "escape", "/", *"h100", "space", "n", "less_than_sign", "equals_sign", "2", "enter")
        assert len(rows(pilot)) == 2


async def test_escape_stops_the_search_and_keeps_the_best_so_far(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.pace.steps.clear()
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("space", "f")
        await until(pilot, "progress", "1 284 tried")
        assert "esc stops" in shown(pilot, "progress")
        await press(pilot, "escape")
        assert "stopped at 8 %: the best so far" in shown(pilot, "progress")
        assert len(rows(pilot)) == 1
        await press(pilot, "enter")
        assert value(pilot, "hardware.name") == "h100-sxm-80gb"
        await press(pilot, "escape")
        assert pilot.app.screen is plan_screen(pilot.app)


async def test_after_a_row_was_applied_it_is_said_what_escape_does(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.pace.steps.clear()
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("space", "f")
        await until(pilot, "progress", "1 284 tried")
        await pilot.press("enter")
        await until(pilot, "note", "applied to the plan; u undoes it, esc stops the search")
        await pilot.press("escape")
        await until(pilot, "note", "the search stops; esc shows the plan")
        await press(pilot, "escape")
        assert pilot.app.screen is plan_screen(pilot.app)


async def test_an_answer_to_an_older_question_never_wins(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.pace.steps.clear()
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("space", "f")
        await until(pilot, "progress", "1 284 tried")
        await pilot.press("tab", "plus")
        engine.pace.steps.set()
        await settle(pilot)
        assert "Goal fastest" in shown(pilot, "question")
        assert "h100-sxm-80gb   8" in rows(pilot)[0]
        assert engine.pace.searched == 2


async def test_another_plan_is_searched_for_when_the_view_is_shown_again(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "+", "escape", "j", "+", "+")
        assert engine.pace.searched == 2
        await press(pilot, "space", "f")
        assert engine.pace.searched == 3
        assert "Goal fastest" in shown(pilot, "question")
        await press(pilot, "escape", "space", "f")
        assert engine.pace.searched == 3


async def test_a_plan_that_cannot_be_searched_says_why(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "enter", *"broken", "enter", "space", "f")
        assert "the model has no layers: choose another model" in shown(pilot, "found")
        await press(pilot, "u")
        assert "a100-sxm-80gb" in rows(pilot)[0]


async def test_the_question_is_copied_as_a_command(make_app: MakeApp, own_folders: Path) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "l", "+", "y")
        command = (own_folders / "config" / "command.txt").read_text()
        assert command == "capacity-tui search --model llama-3-8b --time=4h\n"
        await press(pilot, "Y")
        assert "a100-sxm-80gb" in (own_folders / "config" / "copied.txt").read_text()


async def test_what_rules_exclude_is_shown_on_demand(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "r")
        text = "\n".join(line.plain for line in pilot.app.screen.query_one("TextLines").lines)
        assert "3 000  tp must divide the heads" in text
        assert "such as tp 3 of 32 heads" in text


async def test_nothing_found_says_what_excluded_most(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, "tab", "l", "l", "enter")
        await type_text(pilot, "1")
        assert "nothing found: 12 excluded, cost.usd <= $1.00; r shows why" in shown(pilot, "found")
        await press(pilot, "tab", "enter", "P", "s", "x")
        assert pilot.app.session.store.edits == 0


async def test_a_row_that_another_surpasses_says_which(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot, *"jjjj")
        assert "dominated by a100-sxm-80gb dp4 zero3: time 6.2 h, cost $24.96" in shown(pilot, "details")


@pytest.mark.parametrize("size", [(200, 60), WIDE, (100, 30), USUAL, (70, 24), NARROW, (50, 16), TINY])
async def test_verdict_time_and_cost_stay_at_any_size(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await find(pilot, "j")
        await resize(pilot, size)
        here = next(row for row in rows(pilot) if row.startswith("▌"))
        assert "✓ ●" in here
        assert "12.2 h" in here
        assert "$24.48" in here
        assert all(len(row) <= size[0] for row in rows(pilot))


async def test_the_picture_shows_where_the_row_stands(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await find(pilot)
        assert shown(pilot, "front").count("◆") == 1
        assert "●" in shown(pilot, "front")
        before = shown(pilot, "front")
        await press(pilot, "j")
        assert shown(pilot, "front") != before
        await resize(pilot, USUAL)
        await press(pilot, "v")
        assert "◆" in shown(pilot, "front")
        await press(pilot, "escape", "j")
        assert rows(pilot)[2].startswith("▌")


async def test_the_picture_gives_its_room_to_the_rows(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await find(pilot)
        seen = []
        for _ in range(3):
            await press(pilot, "v")
            seen.append(tuple(pilot.app.screen.query_one(name).display for name in ("#found", "#front")))
        assert seen == [(False, True), (True, False), (True, True)]
        await press(pilot, "enter")
        assert value(pilot, "hardware.name") == "a100-sxm-80gb"


async def test_repeated_keys_do_nothing_twice(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await find(pilot)
        for key in ("enter", "enter", "enter", "j", "j", "slash", "slash"):
            pilot.app.post_message(events.Key(key, "/" if key == "slash" else None))
        await settle(pilot)
        assert pilot.app.session.store.edits == 1
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, FindScreen)


async def test_the_cursor_stays_on_its_row_while_others_come_and_go(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.pace.steps.clear()
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("space", "f")
        await until(pilot, "progress", "1 284 tried")
        engine.pace.steps.set()
        await settle(pilot)
        await press(pilot, *"jjj")
        assert "▌ ✓ ● a100-sxm-80gb   8" in rows(pilot)[3]
        await press(pilot, "tab", "l", "+")
        assert "▌ ✓ ● a100-sxm-80gb   8" in rows(pilot)[0]
        assert [row[0] for row in rows(pilot)].count("▌") == 1
