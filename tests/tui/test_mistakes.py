"""A mistake of the program itself: told in a line, written down, never the end of the plan."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fake_document import FakeDocument
from fake_engine import FakeEngine
from flow import once, plan_screen, press, row, settle, shown, until

from capacity_tui.engine.errors import PlanError
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.settings import Settings
from capacity_tui.tui.shown.comparison import Comparison
from capacity_tui.tui.views.plan.field_list import FieldList
from capacity_tui.tui.views.plan.why import Why

SIZE = (120, 40)


def break_down(*_: object, **__: object) -> None:
    raise ZeroDivisionError("a mistake")


@pytest.fixture
def app(engine: FakeEngine) -> CapacityApp:
    return CapacityApp(engine=lambda: engine, settings=Settings(hint=False, start=False, glyphs="braille"))


@pytest.mark.parametrize(
    ("place", "keys"),
    [
        ("capacity_tui.tui.views.plan.edits.stepped", ("+",)),
        ("capacity_tui.tui.views.plan.field_list.FieldList.move", ("j",)),
        ("capacity_tui.tui.views.plan.estimates.Estimates.explain", ("3", "j")),
        ("capacity_tui.tui.widgets.prompt.Prompt.action_close", ("/", "enter")),
        ("capacity_tui.tui.views.dialogs.picker.Picker.dismiss", ("o", "enter")),
        ("capacity_tui.tui.views.dialogs.help.TextDialog.action_copy", ("?", "y")),
        ("capacity_tui.tui.widgets.themes.load", ("t",)),
        ("fake_document.FakeDocument.explain", ("3", "j")),
        ("fake_engine.FakeEngine.catalogue", ("o", "escape")),
        ("fake_engine.FakeEngine.machine_report", ("m", "escape")),
    ],
)
async def test_screen_goes_on_after_a_mistake_anywhere(
    app: CapacityApp, monkeypatch: pytest.MonkeyPatch, own_folders: Path, place: str, keys: tuple[str, ...]
) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "2", "down", "+", "1")
        await press(pilot, "2")
        with monkeypatch.context() as broken:
            broken.setattr(place, break_down)
            await press(pilot, *keys)
        await press(pilot, "escape")
        if app.session.last_failure is not None:
            await press(pilot, "!")
            assert "internal error" in app.screen.query_one("TextLines").lines[0].plain
            await press(pilot, "escape")
            assert "ZeroDivisionError: a mistake" in (own_folders / "state" / "mistakes.txt").read_text()
        assert app.session.last_failure is not None or "catalogue" in place
        await press(pilot, "2")
        assert "8192" in row(pilot, "config", "Sequence")
        await press(pilot, "u")
        assert "4096" in row(pilot, "config", "Sequence")
        assert app.is_running


async def test_mistake_in_a_paint_is_told(app: CapacityApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        with monkeypatch.context() as broken:
            broken.setattr(Why, "build", break_down)
            await press(pilot, "4")
        assert "internal error" in shown(pilot, "note")
        assert "✓ fits" in row(pilot, "plans", "verdict")


async def test_endless_mistakes_end_the_program_with_the_plan_kept(app: CapacityApp, own_folders: Path) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+")
        for _ in range(30):
            app._handle_exception(ZeroDivisionError("again"))
    assert isinstance(app.fatal, ZeroDivisionError)
    (kept,) = (own_folders / "state" / "unsaved").glob("*.json")
    assert "8192" in kept.read_text()


async def test_code_that_ends_the_program_in_a_thread_is_a_mistake(
    app: CapacityApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*_: object) -> Comparison:
        raise SystemExit(1)

    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        with monkeypatch.context() as broken:
            broken.setattr(FakeDocument, "compare", leave)
            await press(pilot, "down", "+")
        await until(pilot, "note", "internal error")
        await press(pilot, "u")
        assert "internal error" not in shown(pilot, "plans")


async def test_sensors_that_fail_once_are_read_again(
    app: CapacityApp, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity_tui.tui.views.plan.hardware.RETRY_SECONDS", 0.0)
    readings = [NotImplementedError("no counter"), PermissionError("no counter")]
    sampler = engine.sampler()

    class Failing:
        def sample(self) -> object:
            if readings:
                raise readings.pop()
            return sampler.sample()

    monkeypatch.setattr(engine, "sampler", Failing)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        plan_screen(app).sensors.change_rate(0.25)
        assert app.session.last_failure is not None
        await until(pilot, "live", "VRAM")


async def test_plan_opened_while_the_machine_is_looked_at_stays(
    app: CapacityApp, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, detect = threading.Event(), engine.detect

    def slow() -> object:
        looking.wait(10)
        return detect()

    monkeypatch.setattr(engine, "detect", slow)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("o")
        await once(pilot, lambda: len(app.screen_stack) > 1 and app.focused is not None)
        await pilot.press(*"finetune", "enter")
        await once(pilot, lambda: "finetune-8b" in row(pilot, "config", "Model"))
        looking.set()
        await settle(pilot)
        assert "finetune-8b" in row(pilot, "config", "Model")
        assert "H100 SXM" in shown(pilot, "hardware")


async def test_fault_of_an_older_estimate_is_not_told_of_the_present_plan(
    app: CapacityApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, failing = threading.Event(), threading.Event()
    compare = FakeDocument.compare

    def slow(document: FakeDocument) -> Comparison:
        if document.get("training.seq_len") == "8192":
            started.set()
            failing.wait(10)
            raise PlanError("the older one fails")
        return compare(document)

    monkeypatch.setattr(FakeDocument, "compare", slow)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("down", "plus")
        started.wait(10)
        await pilot.press("plus")  # at once: the first step is not shown yet
        failing.set()
        await settle(pilot)
        await pilot.pause(0.2)
        assert "the older one fails" not in shown(pilot, "plans")
        assert app.session.last_failure is None
        assert "16384" in row(pilot, "config", "Sequence")
        assert app.screen.query_one(FieldList).field is not None
