"""The values around that of the field under the cursor, and the largest that fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flow import plan_screen, press, settle, shown

from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]


def test_values_around_follow_the_steps_of_the_field() -> None:
    from capacity_tui.engine.schema import around
    from capacity_tui.tui.shown.results import Field, Kind

    size = Field("size", "Size", "", "4", value=4, kind=Kind.POWER_OF_TWO, minimum=1, maximum=1024)
    assert around(size) == ("1", "2", "4", "8", "16")
    assert around(size, sizes=(1, 2, 4, 6)) == ("1", "2", "4", "6")
    stage = Field("stage", "Stage", "", "3", value=3, kind=Kind.INTEGER, minimum=0, maximum=3)
    assert around(stage) == ("0", "1", "2", "3")
    assert around(Field("text", "Text", "", "x")) == ()
    for own in "ah":
        many = Field("many", "Many", "", own, kind=Kind.CHOICE, choices=tuple("abcdefgh"))
        assert own in around(many)
        assert len(around(many)) == 6


async def test_the_field_under_the_cursor_shows_what_other_values_come_to(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j")
        lines = shown(pilot, "config").splitlines()
        at = next(index for index, line in enumerate(lines) if "[4096✓]" in line)
        assert lines[at].split() == ["1024✓", "2048✓", "[4096✓]", "8192!", "16k✗"]
        assert "57 %" in lines[at + 1]
        assert "22.6 h" in lines[at + 2]


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (200, 60)])
async def test_values_around_have_room_at_any_size(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "j")
        assert "[4096✓]" in shown(pilot, "config")
        width = pilot.app.screen.query_one("#config").size.width
        assert all(len(line) <= width for line in shown(pilot, "config").splitlines())


async def test_choices_are_swept_too(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j", "j", "j", "j")
        assert "[bf16✓]" in shown(pilot, "config")


async def test_a_field_goes_to_its_limit_by_a_key(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j", "j", "M")
        store = plan_screen(pilot.app).session.store
        assert store.document.get("training.micro_batch") == "4"
        assert "5 breaks a limit" in shown(pilot, "note")
        await press(pilot, "u")
        assert store.document.get("training.micro_batch") == "auto"
