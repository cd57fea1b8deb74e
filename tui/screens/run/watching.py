"""Looking at runs again and again: slower while nobody looks, not at all while paused or out of sight."""

from __future__ import annotations

import threading
from contextlib import suppress

from textual.dom import DOMNode

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import RunsRead
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.run.curves import Curves
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.watched import RunsReader

LOOK_SECONDS = 2.0
_UNFOCUSED_SLOWDOWN = 5.0
_WINDOWS = (1.0, 0.5, 0.2, 0.1, 0.05)
"""Shares of a run that curves may show, the newest."""


class Watching:
    """Has runs looked at, and the one under the cursor followed.

    Args:
        session: what every screen works with.
        screen: who the answers go to.
        curves: says what part of the run they show.
    """

    SUBJECT = "live"

    def __init__(self, session: Session, screen: DOMNode, curves: Curves) -> None:
        self._session = session
        self._screen = screen
        self._curves = curves
        self._reader: RunsReader | None = None
        self._reading = threading.Lock()
        self._followed = ""
        self._window = 0
        self._is_paused = False
        self.commands: Commands = {
            "run.pause": self.pause,
            "run.newer": lambda: self._change_window(1),
            "run.older": lambda: self._change_window(-1),
        }

    def follow(self, name: str) -> None:
        """Show another run, at once."""
        if name != self._followed:
            self._followed = name
            self._look_now()

    def pause(self) -> None:
        """Look no more, or go on."""
        self._is_paused = not self._is_paused
        self.restart()

    def restart(self) -> None:
        """Look as often as it is wanted now."""
        self._show_state()
        if self._is_paused:
            self.stop()
            return
        seconds = LOOK_SECONDS * (1.0 if self._session.app.app_focus else _UNFOCUSED_SLOWDOWN)

        def work(request: Request) -> None:
            while not request.cancelled.is_set():
                request.answer(self._look())
                request.cancelled.wait(seconds)

        self._session.ask(self._screen, self.SUBJECT, work)

    def stop(self) -> None:
        """Look no more."""
        self._session.cancel(self._screen, self.SUBJECT)

    def reader(self) -> RunsReader:
        """Return what reads runs; in a thread."""
        if self._reader is None:
            self._reader = self._session.engine.runs(self._session.settings.history)
        return self._reader

    def _look(self) -> RunsRead:
        with self._reading:
            reader = self.reader()
            rows = reader.rows()
            name = self._followed if any(row.id == self._followed for row in rows) else ""
            name = name or (rows[0].id if rows else "")
            run = None
            with suppress(KeyError):  # it was swept since
                run = reader.run(name, _WINDOWS[self._window]) if name else None
            return RunsRead(reader.columns(), rows, run)

    def _look_now(self) -> None:
        """Look before the time is up; while paused once."""
        if self._is_paused:
            self._session.ask(self._screen, self.SUBJECT, lambda _: self._look())
        else:
            self.restart()

    def _change_window(self, offset: int) -> None:
        self._window = max(0, min(self._window + offset, len(_WINDOWS) - 1))
        self._show_state()
        self._look_now()

    def _show_state(self) -> None:
        part = _WINDOWS[self._window]
        shown = "all of it" if part >= 1 else f"the newest {part:.0%}".replace("%", " %")
        self._curves.show_state(f"{shown}, paused" if self._is_paused else shown)
