"""Panels of lines, with a cursor and a summary of one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import BindingType
from textual.message import Message

from capacity_tui.tui.actions import Commanded, bindings, enter_action
from capacity_tui.tui.text import Line, Span, clip, fit, line, to_ascii
from capacity_tui.tui.widgets.lines import WHEEL, Lines


class Findable(NamedTuple):
    """What one item of a panel is found by."""

    label: str = ""  # what it is called
    others: tuple[str, ...] = ()  # its key and other words for it
    text: str = ""  # what it means


class Panel(Commanded, Lines, can_focus=True):
    """Base of the five panels.

    A panel is folded to a single line where there is little room; then it shows its summary.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("panel")
    NUMBER: ClassVar[int] = 0
    TITLE: ClassVar[str] = ""
    KEYS: ClassVar[str] = ""
    SCOPE: ClassVar[str] = ""

    class CursorMoved(Message):
        """Another item of the panel is under the cursor."""

        def __init__(self, panel: Panel) -> None:
            super().__init__()
            self.panel = panel

        @property
        def control(self) -> Panel:
            return self.panel

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a panel the keys that are heard in it."""
        if "BINDINGS" not in vars(cls):
            cls.BINDINGS = bindings(cls.SCOPE or cls.TITLE.lower())
        super().__init_subclass__(**options)

    def __init__(self) -> None:
        super().__init__(id=self.TITLE.lower())
        self.cursor = 0
        self.is_old = False  # whether what is shown is of another plan or question
        self.message = ""  # what stands here in place of items
        self._clicked = -1
        self._items: Sequence[int | None] | None = None
        self.commands = {
            "cursor.up": lambda: self.move(-1),
            "cursor.down": lambda: self.move(1),
            "cursor.page_up": lambda: self.move_page(-1),
            "cursor.page_down": lambda: self.move_page(1),
            "cursor.first": lambda: self.move_to_end(-1),
            "cursor.last": lambda: self.move_to_end(1),
        }

    def show_old(self) -> None:
        """Dim all of it until other items come: they are of another plan or question."""
        self.is_old = True
        self.repaint()

    def toned(self, role: str) -> str:
        return "dim" if self.is_old else role

    def lines_of_message(self) -> tuple[list[Line], None]:
        """Return what is built where there are no items."""
        return [line(Span(f" {self.message}", "dim"))], None

    def keep_cursor(self) -> None:
        """Leave the cursor where it is, or on the last item where there are fewer now."""
        self.cursor = min(self.cursor, max(self.item_count() - 1, 0))

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Return the lines of the panel and those of them that must be in sight."""
        raise NotImplementedError

    def pinned(self) -> int:
        """Return how many lines at the top stay in sight while the others scroll."""
        return 0

    def summary(self) -> Line:
        return line()

    def item_count(self) -> int:
        """Return over how many items the cursor moves; 0 scrolls the lines instead."""
        return 0

    def item_at(self, index: int) -> int | None:
        """Return the item to which a line belongs: as many lines as items, unless ``build`` has noted each line's."""
        items = range(self.item_count()) if self._items is None else self._items
        return items[index] if index < len(items) else None

    def findable(self) -> Sequence[Findable]:
        """Return what each item is found by; where there are none, the lines."""
        return [Findable(text=content.plain) for content in self.lines]

    def repaint(self) -> None:
        if not self.is_mounted or not self.size:
            return
        if self.is_folded:
            heading = Span(f" {self.NUMBER} {self.TITLE:<9}", "heading")
            self.show([fit(Line((heading, *self.summary().spans)), self.size.width)])
            return
        lines, reveal = self.build(self.size.width)
        self.show(lines, reveal, self.pinned())
        self._set_edge()

    @property
    def scope(self) -> str:
        """Where its own keys stand in the list of actions."""
        return self.SCOPE or self.TITLE.lower()

    @property
    def is_current(self) -> bool:
        """Whether the keys go to this panel, also while a question is asked below it."""
        return self.has_class("-current")

    @property
    def is_folded(self) -> bool:
        return self.outer_size.height == 1

    def on_mount(self) -> None:
        self.border_title = f"{self.NUMBER} {self.TITLE}"

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the item that was clicked; a second click does what enter does."""
        row = event.y - (0 if self.is_folded else 1)
        index = self.item_at(self.index_at(row)) if row >= 0 else None
        if index is None:
            return
        is_second = index == self._clicked == self.cursor
        self.move_to(index)
        self._clicked = index
        if is_second and (action := enter_action(self.scope)) and isinstance(self.screen, Commanded):
            self.screen.action_perform(action)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-WHEEL)

    def move_to(self, index: int) -> None:
        """Put the cursor on an item, the nearest one there is; without items bring a line into sight."""
        if not self.item_count():
            self.show(self.lines, range(index, index + 1), self.pinned())
            return
        index = max(0, min(index, self.item_count() - 1))
        if index != self.cursor:
            self.cursor = index
            self.repaint()
            self.post_message(self.CursorMoved(self))

    def reveal(self, index: int) -> None:
        """Put the cursor on an item that was found, also where it was hidden."""
        self.move_to(index)

    def move(self, offset: int) -> None:
        if self.item_count():
            self.move_to(self.cursor + offset)
        else:
            self.scroll_lines(offset)
            self._set_edge()

    def move_page(self, direction: int) -> None:
        self.move(direction * max(self.size.height - 1, 1))

    def move_to_end(self, direction: int) -> None:
        self.move(direction * max(self.item_count(), len(self.lines)))

    def keys(self) -> str:
        """Return what stands in the lower edge while the panel has the focus, actions in braces for their keys."""
        return self.KEYS

    def edge(self) -> str:
        """Return what stands in the lower edge besides the keys."""
        hidden = len(self.lines) - self.size.height
        last = min(self.index_at(self.size.height), len(self.lines))
        return f"{self.top + 1}–{last} of {len(self.lines)}" if hidden > 0 else ""

    def _set_edge(self) -> None:
        keys = self.with_keys(self.keys()) if self.is_current else ""
        parts = [part for part in (keys, self.edge()) if part]
        text = " · ".join(parts)
        if cell_len(text) > self.size.width - 4:
            text = clip(self.edge(), max(self.size.width - 4, 0))
        if self.app.has_class("-ascii"):
            text = to_ascii(text)
        if text != str(self.border_subtitle or ""):
            self.border_subtitle = text


class HeadedPanel(Panel):
    """Rows under a line of heads, which stays in sight while they scroll; ``item_count`` says how many there are."""

    def item_at(self, index: int) -> int | None:
        return index - 1 if 1 <= index <= self.item_count() else None

    def pinned(self) -> int:
        return 1 if self.item_count() else 0

    @property
    def around_cursor(self) -> range:
        """The lines that must be in sight: the row under the cursor, on the first row the heads too."""
        return range(self.cursor if self.cursor else 0, self.cursor + 2)
