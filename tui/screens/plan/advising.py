"""Advice on the plan: asked for once its numbers stand still, shown, and taken as one edit."""

from __future__ import annotations

from textual.dom import DOMNode

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import Advised
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.plan.advice_list import AdviceList
from capacity_tui.tui.session import Session

ADVISE_AFTER_SECONDS = 0.3
"""Advice takes a dozen estimates: it waits until the keys rest."""


class Advising:
    """Has the plan advised on, and takes advice.

    Args:
        session: what every screen works with.
        screen: who the answers go to.
        panel: shows the advice.
    """

    def __init__(self, session: Session, screen: DOMNode, panel: AdviceList) -> None:
        self._session = session
        self._store = session.store
        self._screen = screen
        self._panel = panel
        self._asked: tuple[int, str] | None = None
        self.commands: Commands = {"advice.apply": self.take, "advice.take": self.take}
        session.plan_changes.subscribe(screen, lambda _: self._session.cancel(screen, "advise"))
        session.answers.subscribe(screen, lambda _: self._follow())

    def show(self, event: Advised) -> None:
        """Show advice."""
        self._store.advice, self._store.advised = event.advice, event.advised
        self._session.answers.publish(None)

    def take(self) -> None:
        """Change the plan as the advice says, in one edit."""
        if not self._store.is_advised:
            self._session.say("no advice on this plan yet")
            return
        advice = self._panel.chosen
        if advice is None:
            self._session.say("nothing found that improves it")
            return
        refusal = self._session.apply(advice.change)
        self._session.say(refusal or f"{advice.title}: u undoes it", "bad" if refusal else "good")

    def _follow(self) -> None:
        """Ask anew where the numbers are of another plan or another mode; show what is known."""
        store = self._store
        column, document = store.mode_column, store.document
        if column is None or document is None:
            return
        is_known = store.is_advised
        is_first = not store.advice and not is_known
        self._panel.show_advice(
            None if is_first else store.advice, stale=not is_known, urgent=column.verdict.holds is False
        )
        self._panel.show_subject(f"on {column.mode}" if column is not store.column else "")
        wanted = (store.generation, column.mode)
        if store.is_stale or self._asked == wanted:
            return
        self._asked = wanted

        def work(request: Request) -> Advised | None:
            if request.cancelled.wait(ADVISE_AFTER_SECONDS):
                return None
            return Advised(wanted, document.advice(column.mode, lambda: not request.cancelled.is_set()))

        self._session.ask(self._screen, "advise", work)
