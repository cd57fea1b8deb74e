"""Finding a field or a figure by a part of its name, as it is typed, in whatever panel it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from capacity_tui.tui.actions import Commands
from capacity_tui.tui.session import Session
from capacity_tui.tui.widgets.panel import Findable, Panel
from capacity_tui.tui.widgets.prompt import AskFollowed

_NOWHERE = 3
"""Ranks what only its text was found in; by name where the name begins so, has it, or is another word for it."""


class Place(NamedTuple):
    """An item of a panel."""

    panel: int
    item: int


class Finding:
    """Walks through what a text is found in.

    Args:
        session: what every screen works with.
        ask: asks for a text at the bottom.
        panels: what is searched, in the order in which one walks through it.
        current: returns the panel that one is in.
        show: brings a panel into sight as the current one, and leaves the focus.
    """

    def __init__(
        self,
        session: Session,
        ask: AskFollowed,
        panels: Sequence[Panel],
        current: Callable[[], Panel],
        show: Callable[[Panel], object],
    ) -> None:
        self._session = session
        self._ask = ask
        self._panels = panels
        self._current = current
        self._show = show
        self._text = ""
        self._start = Place(0, 0)
        self.commands: Commands = {
            "find.start": self.start,
            "find.next": partial(self.next, 1),
            "find.previous": partial(self.next, -1),
        }

    def start(self) -> None:
        """Ask for a part of a name, and go to the best match of what is typed so far."""
        self._start = self._here()
        self._ask("Find", "", self._accept, self._follow)

    def next(self, direction: int) -> None:
        """Go to the next place that was sought."""
        if not self._text:
            self.start()
            return
        places = sorted(self._found(self._text))
        here = self._here()
        if not places:
            self._session.say(f"nothing called {self._text}")
            return
        further = [place for place in places if (place > here if direction > 0 else place < here)]
        # Beyond the last one comes the first.
        place = (further or places)[0 if direction > 0 else -1]
        self._go(place)
        self._panels[place.panel].focus()

    def _follow(self, text: str | None) -> str:
        """Go to what matches best, back to the start where nothing does; return what was found in words."""
        found = self._found(text.strip().lower()) if text and text.strip() else {}
        if not found:
            self._go(self._start)
            return "nothing called so" if text and text.strip() else "label, key, or another word for it"
        # What matches as well is taken in order, from where one stands.
        best = min(found, key=lambda place: (found[place], place < self._start, place))
        self._go(best)
        panel = self._panels[best.panel]
        label = panel.findable()[best.item].label or panel.TITLE
        return f"{label} in {panel.TITLE}, one of {len(found)}"

    def _accept(self, text: str) -> str:
        if not text:
            self.next(1) if self._text else None
            return ""
        self._text = text.lower()
        if not self._found(self._text):
            self._session.say(f"nothing called {text}")
        return ""

    def _found(self, text: str) -> dict[Place, int]:
        """Return where a text is found, and how well; what things mean counts where nothing is called so."""
        ranks = {
            Place(number, item): _rank(each, text)
            for number, panel in enumerate(self._panels)
            for item, each in enumerate(panel.findable())
        }
        named = {place: rank for place, rank in ranks.items() if rank < _NOWHERE}
        return named or {place: rank for place, rank in ranks.items() if rank == _NOWHERE}

    def _here(self) -> Place:
        panel = self._current()
        return Place(self._panels.index(panel) if panel in self._panels else 0, panel.cursor)

    def _go(self, place: Place) -> None:
        panel = self._panels[place.panel]
        if panel is not self._current():
            self._show(panel)
        panel.move_to(place.item)


def _rank(each: Findable, text: str) -> int:
    """Return how well something is found by a text, 0 the best; more than ``_NOWHERE`` where it is not."""
    label = each.label.lower()
    if label.startswith(text):
        return 0
    if text in label:
        return 1
    if any(text in other.lower() for other in each.others):
        return 2
    return _NOWHERE if text in each.text.lower() else _NOWHERE + 1
