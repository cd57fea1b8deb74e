"""Pick one of many, each with what the plan would be with it: tried in a thread while the list is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content

from capacity_tui.tui.messages import CatalogueRead, RowsTried
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.dialogs.picker import Picker, Typed
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.tried import ORDERS, Tried
from capacity_tui.tui.terminal.text import Line, Span, clip, left, line
from capacity_tui.tui.view import Choice
from capacity_tui.tui.widgets.lines import Lines
from capacity_tui.tui.widgets.table import GAP, fitted
from capacity_tui.tui.widgets.verdicts import mark_of

_TITLE = 28
_COLUMNS = (("memory", 19), ("time", 14), ("cost", 10), ("price", 11), ("source", 13))
_LEAST_DETAIL = 8
_LISTED = "as listed"
_AT_ONCE = 4
"""Rows that are shown together, so that a slow line is not kept busy."""


class TriedPicker(Picker):
    """A picker whose rows say whether the plan fits with them, what it needs, and what an hour costs.

    Args:
        session: what every screen works with.
        title: what is picked.
        read: returns the choices; runs in a thread.
        attempt: returns what the plan would be with a choice, by its id; runs in a thread.
        current: id of what is chosen now.
        typed: what may be typed instead.
        order: what the rows are sorted by to begin with; empty for as they are listed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "sort", "Sort", priority=True)]

    def __init__(
        self,
        session: Session,
        title: str,
        read: Callable[[], tuple[Choice, ...]],
        attempt: Callable[[str], Tried],
        current: str = "",
        typed: Typed | None = None,
        order: str = "",
    ) -> None:
        super().__init__(session, title, read, current, typed)
        self._attempt = attempt
        self._tried: dict[str, Tried] = {}
        self._order = order or _LISTED
        self._wanted: tuple[str, ...] = ()

    def on_mount(self) -> None:
        """Take the room that the columns need."""
        self.query_one(".dialog").add_class("-wide")
        self._say_order()

    @on(CatalogueRead)
    def try_choices(self) -> None:
        """Try one row after another once they are known, those in sight first."""
        self.call_after_refresh(self._want)
        self._session.ask(self, "try", self._try_all)

    @on(RowsTried)
    def take_tried(self, event: RowsTried) -> None:
        """Show what came in."""
        self._tried |= event.tried
        self._sort()
        self._show()

    def action_sort(self) -> None:
        """Sort by the next column."""
        names = (_LISTED, *ORDERS)
        self._order = names[(names.index(self._order) + 1) % len(names)]
        self._say_order()
        self._cursor = 0
        self._filter_again()
        self._show()

    def _say_order(self) -> None:
        """Say above the list how it is sorted: the head of its columns has no room for that everywhere."""
        order = self._order if self._order == _LISTED else f"by {self._order}"
        self.query_one(".dialog").border_title = Content(f"{self._title}, {order} (tab sorts)")

    def action_move(self, offset: int) -> None:
        """Move the cursor, and try what comes into sight."""
        super().action_move(offset)
        self._want()

    def _filter(self, text: str) -> None:
        super()._filter(text)
        self._sort()
        self.call_after_refresh(self._want)

    def _sort(self) -> None:
        """Put what was tried into the wanted order, and leave the cursor on its row."""
        if self._order == _LISTED:
            return
        here = self._found[self._cursor].id if self._cursor and self._cursor < len(self._found) else ""
        by = ORDERS[self._order]
        known = [choice for choice in self._found if choice.id in self._tried]
        rest = [choice for choice in self._found if choice.id not in self._tried]
        self._found = [*sorted(known, key=lambda choice: by(self._tried[choice.id])), *rest]
        self._cursor = next((index for index, choice in enumerate(self._found) if choice.id == here), 0)

    # In a thread

    def _try_all(self, request: Request) -> None:
        """Try rows until all are known or nobody waits."""
        done: set[str] = set()
        batch: dict[str, Tried] = {}
        while not request.cancelled.is_set():
            name = next((row for row in self._left() if row not in done), None)
            if name is not None:
                done.add(name)
                batch[name] = self._attempt(name)
            if batch and (name is None or len(batch) >= _AT_ONCE):
                request.answer(RowsTried(batch))
                batch = {}
            if name is None:
                break

    def _left(self) -> Iterator[str]:
        """Yield ids of rows, those in sight first."""
        yield from self._wanted
        yield from (choice.id for choice in tuple(self._found))
        yield from (choice.id for choice in self._choices)

    # Lines

    def _want(self) -> None:
        """Note which rows are in sight."""
        lines = self.query_one(Lines)
        seen = self._found[max(lines.top - 1, 0) : lines.top + lines.size.height]
        self._wanted = tuple(choice.id for choice in seen)

    def _head(self, width: int) -> Line | None:
        names = "".join(f"{name:<{size}}" for name, size in _columns_in(width))
        return line(Span(" " * (_TITLE + 4), "dim"), Span(names, "dim"))

    def _line(self, choice: Choice, index: int, width: int) -> Line:
        tried = self._tried.get(choice.id)
        mark = mark_of(tried.verdict) if tried else Span("…", "dim")
        used = _TITLE + 4
        shown = [
            Span("▌" if index == self._cursor else " ", "accent"),
            Span(f"{mark.text} ", mark.role),
            Span(left(clip(choice.title, _TITLE), _TITLE + 1), "best" if choice.id == self._current else "value"),
        ]
        detail = choice.detail
        if tried and tried.reason:
            detail = tried.reason
        else:
            for name, size in _columns_in(width):
                text = getattr(tried, name) if tried else choice.price if name == "price" else ""
                shown.append(Span(left(clip(text, size - 1), size), "value"))
                used += size
        room = max(width - used, 0)
        shown.append(Span(left(clip(detail, room), room) if room >= _LEAST_DETAIL else " " * room, "dim"))
        return line(*shown, selected=index == self._cursor)


def _columns_in(width: int) -> tuple[tuple[str, int], ...]:
    """Return the columns that there is room for, dropped from the right."""
    places = fitted([size - GAP for _, size in _COLUMNS], range(1, len(_COLUMNS) + 1), width - _TITLE - 4 - GAP)
    return tuple(_COLUMNS[place] for place in places)
