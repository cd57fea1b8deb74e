"""The screen over a small engine, with settings and files in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_engine import FakeEngine
from textual import _wait
from textual.css.stylesheet import Stylesheet

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.settings import Settings


@pytest.fixture(autouse=True)
def look_often_whether_the_screen_has_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two such waits follow each key that a test presses.
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", 1 / 200)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", 1 / 200 / 20)


@pytest.fixture(autouse=True, scope="session")
def parse_styles_once() -> Iterator[None]:
    """Let apps of one theme share what their style sheets parse to, as those of one app do."""
    parse, parsed = Stylesheet._parse_rules, {}

    def parsed_once(self: Stylesheet, *sheet: object, **how: object) -> object:
        key = (sheet, *how.items(), *self._variables.items())
        if key not in parsed:
            parsed[key] = parse(self, *sheet, **how)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parsed_once)
        yield


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPACITY_TUI_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CAPACITY_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("capacity_tui.tui.views.plan.estimates.EXPLAIN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("capacity_tui.tui.views.plan.why.ADVISE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("capacity_tui.tui.views.plan.estimates.SWEEP_AFTER_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture(scope="session")
def real_engine() -> CapacityEngine:
    """The real engine, which knows this machine."""
    engine = CapacityEngine()
    engine.detect()
    return engine


@pytest.fixture
def make_app(engine: FakeEngine) -> Iterator[Callable[..., CapacityApp]]:
    made: list[CapacityApp] = []

    def make(**choices: object) -> CapacityApp:
        settings = Settings(**{"hint": False, "start": False, "glyphs": "braille", **choices.pop("settings", {})})
        made.append(CapacityApp(engine=lambda: engine, settings=settings, **choices))
        return made[-1]

    yield make
    # The screen goes on after a mistake, which a test must not.
    assert not [mistake for app in made for mistake in app.mistakes]
