"""Keys that come all at once, as slow lines bring them, are taken one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from flow import burst, once, press, settle

from capacity_tui.tui.actions import VIEWS
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.terminal import KeysInTurn
from capacity_tui.tui.views.view_screen import ViewScreen

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


@pytest.mark.parametrize(
    ("keys", "key", "value"),
    [
        ((*"Hl4", "enter", "3", "l"), "hardware.name", "l4"),
        (("enter", *"mistral", "enter", *"jjk", "3"), "model.name", "mistral-7b"),
    ],
)
async def test_what_is_entered_before_a_list_is_read_is_taken_from_it(
    make_app: MakeApp, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], key: str, value: str
) -> None:
    app, catalogue = make_app(), engine.catalogue
    monkeypatch.setattr(engine, "catalogue", lambda name: (time.sleep(0.3), catalogue(name))[1])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        burst(app, *keys)
        await settle(pilot)
        assert app.session.store.document.get(key) == value
        assert app.focused is not None
        assert app.focused.id == "plans"


async def test_a_list_that_is_still_read_can_be_left(
    make_app: MakeApp, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, read = make_app(), threading.Event()
    monkeypatch.setattr(engine, "catalogue", lambda name: (read.wait(5), ())[1])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        burst(app, "H", "l", "enter", "escape")
        await once(pilot, lambda: not app.has_keys and len(app.screen_stack) == 1)
        read.set()


async def test_a_line_and_keys_behind_it_go_to_the_plan_of_the_line(make_app: MakeApp) -> None:
    app = make_app(settings={"start": True})
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        burst(app, *"mistral-7b", "enter", "3")
        await settle(pilot)
        assert view(app) == "plan"
        assert app.session.store.document.get("model.name") == "mistral-7b"
        assert app.focused is not None
        assert app.focused.id == "plans"


async def test_a_key_that_is_lost_on_its_way_holds_up_no_other(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        with monkeypatch.context() as patch:
            patch.setattr(KeysInTurn, "on_key_done", lambda self, message: None)
            burst(app, "2")
            await pilot.pause(1.2)
        burst(app, "3")
        await settle(pilot)
        assert app.focused is not None
        assert app.focused.id == "plans"
