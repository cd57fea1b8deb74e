"""A screen of one's own over a session, and that an older answer never wins on it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable

from fake_document import FakeDocument
from fake_engine import FakeEngine
from flow import press, settle, shown
from textual.app import ComposeResult
from textual.screen import Screen

from capacity_tui.tui.actions import ACTIONS, Commanded
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.comparison import Comparison
from capacity_tui.tui.text import Span, line
from capacity_tui.tui.views.cloud.screen import CloudScreen
from capacity_tui.tui.views.cluster.screen import ClusterScreen
from capacity_tui.tui.views.find.screen import FindScreen
from capacity_tui.tui.views.machine.screen import MachineScreen
from capacity_tui.tui.views.run.screen import RunScreen
from capacity_tui.tui.views.scale.screen import ScaleScreen
from capacity_tui.tui.widgets.head import Footer, NoteLine
from capacity_tui.tui.widgets.lines import Guarded, Lines

MakeApp = Callable[..., CapacityApp]
SIZE = (120, 40)


class Verdicts(Guarded, Screen[None]):
    """Shows whether the plan fits, mode by mode."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def compose(self) -> ComposeResult:
        yield Lines(id="verdicts")
        yield NoteLine(self.session)
        yield Footer(self.session, "verdicts")

    def on_mount(self) -> None:
        self.session.plan_changes.subscribe(self, lambda _: self.session.compare(self, self.show))
        self.session.compare(self, self.show)

    def show(self, comparison: Comparison) -> None:
        columns = comparison.columns
        self.query_one(Lines).show([line(Span(f"{column.mode}: {column.verdict.words}")) for column in columns])


async def test_a_screen_needs_nothing_but_the_session(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app.push_screen(Verdicts(app.session))
        await settle(pilot)
        assert shown(pilot, "verdicts").splitlines()[2] == "extreme: tight"
        app.session.change("training.seq_len", "32768")
        await settle(pilot)
        assert shown(pilot, "verdicts").splitlines()[2] == "extreme: does not fit"
        assert app.session.change("training.seq_len", "1") == "1 is out of range (allowed 128–1.04858e+06)"
        app.session.say("said on every screen")
        assert "said on every screen" in shown(pilot, "note")
        await pilot.app.pop_screen()
        await press(pilot, "u")
        assert app.session.store.edits == 0


async def test_an_answer_to_an_older_request_never_wins(make_app: MakeApp, monkeypatch) -> None:
    started, slow = threading.Event(), threading.Event()
    compare = FakeDocument.compare

    def held_up(document: FakeDocument) -> Comparison:
        if document.get("training.seq_len") == "8192":
            started.set()
            slow.wait(10)
        return compare(document)

    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        app.push_screen(Verdicts(app.session))
        await settle(pilot)
        monkeypatch.setattr(FakeDocument, "compare", held_up)
        app.session.change("training.seq_len", "8192")
        assert await asyncio.to_thread(started.wait, 10)
        app.session.change("training.seq_len", "32768")
        slow.set()
        await settle(pilot)
        assert shown(pilot, "verdicts").splitlines()[2] == "extreme: does not fit"


async def test_every_action_has_a_command_where_it_is_heard(make_app: MakeApp, engine: FakeEngine) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        others = (MachineScreen, FindScreen, CloudScreen, RunScreen, ScaleScreen, ClusterScreen)
        views = [screen(app.session) for screen in others]
        heard = {name for hearing in (app, app.screen, app.screen.focused, *views) for name in commands(hearing)}
        assert heard == {action.id for action in ACTIONS}


def commands(hearing: object) -> set[str]:
    assert isinstance(hearing, Commanded)
    return set(hearing.commands)


async def test_memory_is_searched_for_garbage_once_keys_rest(make_app: MakeApp, monkeypatch) -> None:
    searched = asyncio.Event()
    async with make_app().run_test(size=SIZE) as pilot:
        await settle(pilot)
        monkeypatch.setattr(gc, "get_count", lambda: (0, 0, 1000))
        monkeypatch.setattr(gc, "collect", searched.set)
        await asyncio.sleep(0)
        assert not searched.is_set()
        await press(pilot, "j")
        await asyncio.wait_for(searched.wait(), 10)
