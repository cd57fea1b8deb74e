"""Keys that come all at once, as slow lines bring them, are taken one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flow import burst, press, settle

from capacity_tui.tui.actions import VIEWS
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.screens.view_screen import ViewScreen

MakeApp = Callable[..., CapacityApp]
SIZE = (120, 40)


def view(app: CapacityApp) -> str:
    assert isinstance(app.screen, ViewScreen)
    return app.screen.VIEW


async def test_a_view_is_reached_however_fast_its_keys_come(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        for name, key in VIEWS.items():
            burst(app, "space", key)
            await settle(pilot)
            assert view(app) == name


async def test_keys_are_heard_where_those_before_them_led(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        burst(
            app, "space", "s", "question_mark", "escape", "space", "f", "space", "p", "2", "slash", *"sequence", "enter"
        )
        await settle(pilot)
        assert view(app) == "plan"
        assert app.focused is not None
        assert app.focused.id == "config"
        before = app.session.store.document.get("training.seq_len")
        burst(app, "plus", "plus", "minus")
        await settle(pilot)
        assert app.session.store.document.get("training.seq_len") != before


@pytest.mark.parametrize(
    ("keys", "name"),
    [(["ctrl+u", "a", "b", "enter"], "ab"), (["ctrl+u", "a", "b", "backspace", "c", "home", "x", "enter"], "xac")],
)
async def test_what_is_typed_into_an_input_keeps_its_order(
    make_app: MakeApp, own_folders: Path, keys: list[str], name: str
) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "E", "enter")
        burst(app, *keys)
        await settle(pilot)
        assert (own_folders / f"{name}.yaml").exists()
