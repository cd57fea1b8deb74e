"""Which plan is opened: the one to begin with, one that is picked, or what an earlier run left behind."""

from __future__ import annotations

from pathlib import Path

from textual.dom import DOMNode

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import Detected, LeftBehindFound, Opened, Restored
from capacity_tui.tui.mistakes import reported
from capacity_tui.tui.paths import shortened
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.dialogs.picker import PATH, Picker
from capacity_tui.tui.session import Session
from capacity_tui.tui.swap import LeftBehind
from capacity_tui.tui.view import HARDWARE_KEY, Choice

_LATER, _DISCARD = "decide later", "throw away"


class Opening:
    """Opens plans.

    Args:
        session: what every screen works with.
        screen: who is told about this machine, and what was left behind.
    """

    def __init__(self, session: Session, screen: DOMNode) -> None:
        self._session = session
        self._screen = screen
        self._left_behind: tuple[LeftBehind, ...] = ()
        self.commands: Commands = {"file.open": self.pick, "file.restore": self.restore}

    def begin(self, source: Path | str | None, accelerator: str | None) -> None:
        """Look at the machine, then open the plan that was asked for, or propose one."""
        opening = self._session.request(self._session.app, "open")

        def work(request: Request) -> None:
            with reported(request.answer):
                if found := self._session.unsaved.left_behind():
                    request.answer(LeftBehindFound(found))
            with reported(request.answer):
                request.answer(Detected(self._session.engine.detect()))
            if not opening.is_newest:
                return
            with reported(opening.answer):
                opening.answer(self._first(source, accelerator))

        self._session.ask(self._screen, "begin", work)

    def pick(self) -> None:
        """Pick a plan to open."""

        def picked(choice: str | None) -> None:
            if choice is not None:
                self._session.open_named(choice)

        picker = Picker(self._session, "Open a plan", lambda: self._session.engine.catalogue("profile"), typed=PATH)
        self._session.app.push_screen(picker, picked)

    def offer(self, found: tuple[LeftBehind, ...]) -> None:
        """Ask what to do with edits that were not saved when the program ended.

        A list that opens under the hands of somebody who types would take the keys: then a note tells of them.
        """
        self._left_behind = found
        if self._session.was_typed:
            self._tell(", ".join(plan.name for kept in found for plan in kept.plans))
        else:
            self.restore()

    def restore(self) -> None:
        """Let the user choose what becomes of edits that were left behind."""
        found = self._left_behind
        if not found:
            self._session.say("nothing was left behind")
            return
        plans = (
            Choice(str(index), f"restore {', '.join(plan.name for plan in kept.plans)}", _described(kept))
            for index, kept in enumerate(found)
        )
        choices = (*plans, Choice(_LATER, _LATER, "at the next start"), Choice(_DISCARD, _DISCARD, "for good"))

        def picked(choice: str | None) -> None:
            self._left_behind = ()
            self._tell("")
            for index, kept in enumerate(found):
                if choice == str(index):
                    self._restore(kept)
                elif choice == _DISCARD:
                    kept.discard()
                else:
                    kept.leave()

        picker = Picker(self._session, "Not saved when the program ended", lambda: choices)
        self._session.app.push_screen(picker, picked)

    def _tell(self, left_behind: str) -> None:
        self._session.left_behind = left_behind
        self._session.answers.publish(None)

    def _first(self, source: Path | str | None, accelerator: str | None) -> Opened:
        engine = self._session.engine
        if isinstance(source, Path) and engine.is_line(str(source)):
            document, assumed = engine.plan_of_line(str(source), None, accelerator)
            return Opened(document, None, assumed)
        place = engine.locate(source) if isinstance(source, Path) else source
        document = engine.open(place) if place else engine.propose(accelerator)
        if place and accelerator:
            document = document.edited(HARDWARE_KEY, accelerator)
        return Opened(document, place if isinstance(place, Path) else None)

    def _restore(self, kept: LeftBehind) -> None:
        def work(_: Request) -> Restored:
            opened = ((self._session.engine.open(plan.text), plan.path) for plan in kept.plans)
            return Restored(tuple((document, Path(path) if path else None) for document, path in opened), kept)

        self._session.ask(self._session.app, "open", work)


def _described(kept: LeftBehind) -> str:
    when = f"{kept.kept_at:%Y-%m-%d %H:%M}"
    return ", ".join([when, *(shortened(Path(plan.path)) for plan in kept.plans if plan.path)])
