"""What once ended the program: values nobody knows, keys that come twice, numbers that are old."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from flow import burst, offered, once, press, press_only, row, settle, shown, until

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.settings import Settings

MakeApp = Callable[..., CapacityApp]
SIZE = (120, 40)
PLAN = "model: {{name: {}}}\nhardware: {{name: h100-sxm-80gb}}\ntraining: {{tokens: 1e9}}"


@pytest.mark.parametrize("name", ["auto", "nosuchmodel", "alexnet"])
def test_fields_of_a_model_that_is_open_or_unknown_can_still_be_edited(real_engine: CapacityEngine, name: str) -> None:
    document = real_engine.open(PLAN.format(name))
    assert next(field.text for field in document.fields() if field.key == "model.name") == name
    assert document.edited("training.micro_batch", "2").fields()
    for model in ("gpt2-small", "svm_rbf"):
        assert document.edited("model.name", model).compare().columns


async def test_backspace_on_the_model_hands_it_to_the_modes(
    real_engine: CapacityEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = load_catalog().architectures
    monkeypatch.setattr(models, "decoders", models.decoders[-8:])
    app = CapacityApp(
        source=PLAN.format("gpt2-small"), engine=lambda: real_engine, settings=Settings(hint=False, glyphs="braille")
    )
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press_only(pilot, "backspace")  # and before the modes have chosen among all models:
        await once(pilot, lambda: "auto" in row(pilot, "config", "Model"))
        await press(pilot, "u")
        assert "gpt2-small" in row(pilot, "config", "Model")


async def test_unknown_model_in_a_plan_is_refused_in_words(real_engine: CapacityEngine) -> None:
    app = CapacityApp(
        source=PLAN.format("gpt2-smal"), engine=lambda: real_engine, settings=Settings(hint=False, glyphs="braille")
    )
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await until(pilot, "note", "no model is called 'gpt2-smal'")
        await once(pilot, lambda: "gpt2-smal" in row(pilot, "config", "Model"))


@pytest.mark.parametrize("opening", ["enter", "H", "o", "e"])
async def test_enter_again_and_again_takes_a_choice_and_opens_the_list_again(make_app: MakeApp, opening: str) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, opening)
        burst(app, "enter", "enter", "enter")
        await settle(pilot)
        assert len(app.screen_stack) == 1
        assert app.is_running


async def test_enter_again_and_again_in_the_palette_runs_one_command(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+p", *"next view")
        await offered(pilot)
        burst(app, *["enter"] * 6)
        await settle(pilot)
        assert type(app.screen).__name__ == "FindScreen"


@pytest.mark.parametrize("opening", [("question_mark",), ("m",), ("4", "enter"), ("exclamation_mark",)])
async def test_leaving_twice_leaves_once(make_app: MakeApp, opening: tuple[str, ...]) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, *opening)
        burst(app, "escape", "escape")
        await settle(pilot)
        assert len(app.screen_stack) == 1
        assert app.is_running


@pytest.mark.parametrize("keys", [("y",), ("E", "enter"), ("Y",)])
async def test_old_numbers_are_neither_copied_nor_exported(
    make_app: MakeApp, own_folders: Path, keys: tuple[str, ...]
) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", *"broken", "enter")
        await press(pilot, keys[0])
        assert "nothing was" in shown(pilot, "note")
        assert not app.clipboard
        await press(pilot, *keys[1:])
    assert not list(own_folders.glob("*.yaml"))


async def test_numbers_that_are_still_computed_are_not_waited_for(make_app: MakeApp, engine: FakeEngine) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        engine.gate.clear()
        await pilot.press("down", "plus", "y")
        await pilot.pause()
        assert "nothing was written" in shown(pilot, "note")
        engine.gate.set()
        await settle(pilot)


async def test_folder_of_a_user_nobody_knows_is_refused_in_words(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "o")
        app.focused.value = "~nosuchuser/x.yaml"  # type: ignore[union-attr]
        await press(pilot, "enter")
        assert app.is_running
        assert "nosuchuser" in shown(pilot, "note")


def test_every_example_shows_its_fields(real_engine: CapacityEngine) -> None:
    for choice in real_engine.catalogue("profile"):
        assert real_engine.open(choice.id).fields()
