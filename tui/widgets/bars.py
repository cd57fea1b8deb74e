"""Bars of a few cells, the line at the bottom, and the signs of verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.tui.actions import ACTIONS, VIEWS, Action, heard_in, key_codes, key_names
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line, Span, fit
from capacity_tui.tui.widgets.lines import DrawnLines

if TYPE_CHECKING:
    from capacity_tui.engine.verdict import Verdict


class Bar(DrawnLines):
    """One line that is laid out anew when its width changes."""

    def build(self, width: int) -> Line:
        """Return the line for a width."""
        raise NotImplementedError

    def draw(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line in any case
        """Return the line alone."""
        return [self.build(width)]


_ALWAYS = {"app.help", "app.quit", "view.choose"}


class Footer(Bar):
    """The most useful keys, or the views with theirs.

    Args:
        session: its settings know other keys.
        view: the view whose keys are shown, with those of every view and of the program.
    """

    def __init__(self, session: Session, view: str) -> None:
        super().__init__(id="footer")
        self._keymap = session.settings.keys
        self._view = view
        self._panel = ""
        self.lists_views = False

    def name_keys_of(self, panel: str) -> None:
        """Name the keys of another panel besides those of the view."""
        self._panel = panel
        self.repaint()

    def list_views(self, wanted: bool = True) -> None:
        """List the views in place of the keys, or the keys again."""
        self.lists_views = wanted
        self.repaint()

    def view_of(self, key: str) -> str:
        """Return the view that a key stands for while they are listed, empty for none."""
        return next((name for name, action in _view_actions() if key in key_codes(action, self._keymap)), "")

    def build(self, width: int) -> Line:
        """Lay out as many keys as fit, whole ones only; an ellipsis says that there are more."""
        if self.lists_views:
            return fit(Line(tuple(self._views())), width)
        spans: list[Span] = []
        room = width
        hints = self._hints()
        for index, (key, name) in enumerate(hints):
            room -= cell_len(key) + cell_len(name) + 3
            if room < (0 if index == len(hints) - 1 else 2):
                spans.append(Span(" …", "dim"))
                break
            spans += [Span(f" {key}", "key"), Span(f" {name} ", "label")]
        return Line(tuple(spans))

    def _views(self) -> Iterator[Span]:
        yield Span(" View:", "heading")
        for name, action in _view_actions():
            yield Span(f"  {key_names(action, self._keymap)[0]}", "key")
            yield Span(f" {name.capitalize()}", "dim" if name == self._view else "label")
        yield Span("   any other key: stay here", "dim")

    def _hints(self) -> list[tuple[str, str]]:
        hints = []
        own_keys = {key for action in ACTIONS if action.scope == self._panel for key in self._keys(action)}
        for action in sorted(ACTIONS, key=self._rank):
            key = self._keys(action)[0]
            is_heard = action.scope == self._panel or (action.scope in heard_in(self._view) and key not in own_keys)
            if not action.footer or not is_heard:
                continue
            own, space, name = action.footer.rpartition(" ")
            is_default = action.id not in self._keymap
            hints.append((own if space and is_default else key, name))
        return hints

    def _rank(self, action: Action) -> int:
        """Return how far at the right a key stands: after what always holds come the keys of panel and view."""
        return 0 if action.id in _ALWAYS else 1 if action.scope in (self._panel, self._view, "asking") else 2

    def _keys(self, action: Action) -> tuple[str, ...]:
        return key_names(action, self._keymap)


def _view_actions() -> list[tuple[str, Action]]:
    actions = {action.id: action for action in ACTIONS}
    return [(name, actions[f"view.{name}"]) for name in VIEWS]


_FULL, _EMPTY = "▇", "░"


def gauge(share: float, width: int) -> str:
    """Return a bar; any share above nothing fills a cell, and nothing below all of it fills the last one.

    Args:
        share: how full, 1 for full; more is drawn as full.
        width: cells from left to right.
    """
    filled = round(min(max(share, 0.0), 1.0) * width)
    if 0.0 < share < 1.0 and width > 1:
        filled = min(max(filled, 1), width - 1)
    return _FULL * filled + _EMPTY * (width - filled)


def mark_of(verdict: Verdict) -> Span:
    """Return the sign of a verdict."""
    return Span(verdict.sign, verdict.tone)


def worded(verdict: Verdict, words: str = "") -> Span:
    """Return the sign of a verdict before its words, or before what they say of one plan."""
    return Span(f"{verdict.sign} {words or verdict.words}", verdict.tone)
