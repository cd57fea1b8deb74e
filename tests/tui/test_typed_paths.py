"""What a person may type where a file is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flow import press, settle, type_text

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.widgets.prompt import Entry

MakeApp = Callable[..., CapacityApp]


UNUSABLE = {
    "": "type the name of a file",
    "/": "type the name of a file",
    ".": "type the name of a file",
    "a" * 300: "cannot be written: File name too long",
    "/dev/null/x": "cannot be made",
}


@pytest.mark.parametrize("keys", [("E", "enter"), ("S",)])
async def test_unusable_file_names_are_refused_in_place(make_app: MakeApp, keys: tuple[str, ...]) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        for text, given in UNUSABLE.items():
            pilot.app.screen.query_one(Entry).value = text
            await press(pilot, "enter")
            lines = pilot.app.screen.query_one("Prompt Lines").lines
            assert given in " ".join(line.plain.strip() for line in lines)
            assert len(lines) <= 4
            assert pilot.app.screen.query_one("Prompt").is_open


async def test_name_of_a_user_nobody_knows_is_a_name_like_any_other(make_app: MakeApp, own_folders: Path) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "E", "enter")
        await type_text(pilot, "~nobody.knows.me")
        assert (own_folders / "~nobody.knows.me").exists()
