"""The views of the plan: what all of them show, and going from one to another."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from fake_engine import FakeEngine
from flow import once, plan_screen, press, resize, row, settle, shown
from textual.pilot import Pilot
from textual.widget import Widget

from capacity_tui.tui.actions import VIEWS
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.view_screen import ViewScreen

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


def view(pilot: Pilot[None]) -> str:
    screen = pilot.app.screen
    assert isinstance(screen, ViewScreen)
    return screen.VIEW


def in_line(pilot: Pilot[None], name: str) -> int:
    """Return in which row of the screen a widget stands."""
    return pilot.app.screen.query_one(f"#{name}", Widget).region.y


async def test_every_view_has_the_two_head_lines_and_the_way_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "j", "j")
        for name, letter in VIEWS.items():
            await press(pilot, "space", letter)
            assert view(pilot) == name
            assert [in_line(pilot, line) for line in ("tabs", "answer", "note")] == [0, 1, 3]
            assert f"[{name.capitalize()}]" in shown(pilot, "tabs")
            assert "llama-3-8b · 8×detected" in shown(pilot, "tabs")
            assert "✓ fits" in shown(pilot, "answer")
            await press(pilot, "escape")
            assert view(pilot) == "plan"
            assert "▌Micro batch" in shown(pilot, "config")


async def test_strip_names_the_views_and_any_other_key_only_closes_it(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "space")
        assert "m Machine" in shown(pilot, "footer")
        await press(pilot, "j", "j")
        assert "m Machine" not in shown(pilot, "footer")
        assert "▌Sequence" in shown(pilot, "config")
        await press(pilot, "space", "space", "escape", "j")
        assert "▌Micro batch" in shown(pilot, "config")


async def test_views_go_round_both_ways(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        for key in (">", "<"):
            seen = []
            for _ in VIEWS:
                await press(pilot, key)
                seen.append(view(pilot))
            assert set(seen) == set(VIEWS)
            assert seen[-1] == "plan"


async def test_a_view_is_found_as_it_was_left(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "m", "G")
        screen = pilot.app.screen
        await press(pilot, "escape", "m")
        assert pilot.app.screen is screen
        assert "setting 59" in "\n".join(line.plain for line in screen.query_one("TextLines").in_sight)


async def test_the_answer_follows_the_plan_in_every_view(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert not pilot.app.session.change("training.seq_len", "32768")
        await settle(pilot)
        assert "✗ does not fit" in shown(pilot, "answer")
        assert "1 change" in shown(pilot, "answer")
        await press(pilot, "m", "u")
        assert "undo" not in shown(pilot, "note")
        assert view(pilot) == "machine"
        assert "✓ fits" in shown(pilot, "answer")
        assert "change" not in shown(pilot, "answer")


@pytest.mark.parametrize("size", [(200, 60), WIDE, (100, 30), USUAL, (70, 24), NARROW])
async def test_verdict_time_and_cost_are_in_sight_at_any_size_and_zoomed(
    make_app: MakeApp, size: tuple[int, int]
) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        for keys in ((), ("j", "+", "+", "+"), ("z",), ("z", "3", "G"), ("m",)):
            await press(pilot, *keys)
            answer = shown(pilot, "answer")
            assert "fit" in answer
            assert "27.8 h" in answer or "22.6 h" in answer
            assert "no price known" in answer
            assert max(map(len, answer.splitlines())) <= size[0]


async def test_old_numbers_are_dimmed_until_the_new_ones_come(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        answer = plan_screen(pilot.app).query_one("#answer")
        engine.gate.clear()
        await pilot.press("j", "plus")
        await once(pilot, lambda: {span.role for span in answer.lines[0].spans if span.text.strip()} == {"dim"})
        engine.gate.set()
        await settle(pilot)
        assert "best" in {span.role for span in answer.lines[0].spans}


async def test_the_note_has_its_line_whether_or_not_there_is_something_to_say(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        assert not shown(pilot, "note").strip()
        before = in_line(pilot, "plans")
        await press(pilot, "j", "+", "+", "+")
        assert "✗ needs 270.0 GiB, a device has 80.0 GiB" in shown(pilot, "note")
        assert in_line(pilot, "plans") == before
        await press(pilot, "x")
        assert "baseline: balanced" in shown(pilot, "note")
        await press(pilot, "j")
        assert "✗ needs" in shown(pilot, "note")


async def test_names_and_verdicts_stay_while_the_plans_scroll(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(80, 18)) as pilot:
        await settle(pilot)
        await press(pilot, "3", "G")
        lines = shown(pilot, "plans").splitlines()
        assert "[balanced]" in lines[0]
        assert lines[1].startswith("verdict")
        assert "activations" in lines[-1]
        await press(pilot, "g")
        assert "peak / GPU" in shown(pilot, "plans").splitlines()[2]


async def test_heads_end_where_their_values_do(make_app: MakeApp) -> None:
    for size in ((200, 60), WIDE, USUAL):
        async with make_app().run_test(size=size) as pilot:
            await settle(pilot)
            head, verdict, *rows = shown(pilot, "plans").splitlines()
            values = (re.sub(r" [-+▲▼][-+×<.%\d]+ *$", "", line) for line in (head, verdict, *rows[:4]))
            ends = {len(line.rstrip()) for line in values}
            assert len(ends) == 1


async def test_values_stand_beside_their_labels_on_a_large_terminal(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        line = row(pilot, "plans", "peak / GPU")
        assert line.index("30.0 GiB") < 40
        assert pilot.app.screen.query_one("#beside").region.y == pilot.app.screen.query_one("#plans").region.y


async def test_movement_keys_only_move(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "j", "l")
        assert pilot.app.focused.id == "plans"
        await press(pilot, "left", "left", "left")
        assert pilot.app.focused.id == "config"
        await press(pilot, "right", "l", "l", "l", "l")
        assert pilot.app.focused.id == "why"
        assert plan_screen(pilot.app).session.store.edits == 0


async def test_enter_and_q_mean_the_same_in_every_view(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "j", "+", "m", "enter", "?", "q", "enter")
        assert app.is_running
        await press(pilot, "escape", "q")
        assert "q again quits" in shown(pilot, "note")
        assert view(pilot) == "machine"
        await pilot.press("q")
        assert app.return_code == 0


async def test_a_list_stands_over_the_plan_and_outlives_resizing_and_repeated_keys(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", *"mistral")
        for size in (TINY, WIDE, USUAL):
            await resize(pilot, size)
        background = pilot.app.screen.styles.background
        assert background.a == 0
        await press(pilot, "enter", "enter", "enter")
        assert "mistral-7b" in shown(pilot, "tabs")
