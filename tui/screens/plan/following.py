"""What the keys of an explanation do: following a number to those it was made from, and back again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from capacity_tui.engine.present import followed
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.messages import Explained
from capacity_tui.tui.screens.plan.why import Why, explain_lines
from capacity_tui.tui.screens.view_screen import ShowText
from capacity_tui.tui.session import Session

if TYPE_CHECKING:
    from capacity_tui.engine.present import ExplanationText


class Following:
    """Opens what an explanation is made from.

    Args:
        session: what every screen works with.
        screen: who the answers go to.
        why: shows where a number comes from.
        show: shows a text over the panels.
        leave: called where there is nothing to go back to.
        explainer: returns what explains a figure by its key, in a thread; None while there are no numbers.
    """

    def __init__(
        self,
        session: Session,
        screen: DOMNode,
        why: Why,
        show: ShowText,
        leave: Callable[[], object],
        explainer: Callable[[], Callable[[str], ExplanationText] | None],
    ) -> None:
        self._session = session
        self._screen = screen
        self._why = why
        self._show = show
        self._leave = leave
        self._explainer = explainer
        self.commands: Commands = {"why.follow": self.follow, "why.back": self.back}

    def follow(self) -> None:
        """Open the number under the cursor; on any other line the whole explanation."""
        explanation, entry = self._why.explanation, self._why.entry
        if explanation is None:
            return
        if entry is None:
            ascii_only = self._session.app.has_class("-ascii")
            self._show(explanation.title, lambda width: explain_lines(explanation, width, ascii_only))
        elif entry.key:
            self._explain(entry.key)
        else:
            self._why.open(followed(explanation, entry))

    def back(self) -> None:
        """Go back to the number before, or leave the panel."""
        if not self._why.back():
            self._leave()

    def _explain(self, key: str) -> None:
        explain = self._explainer()
        if explain is not None:
            self._session.ask(self._screen, "follow", lambda _: Explained(explain(key), is_followed=True))
