"""Widgets of lines, which outlive a mistake in their own handlers, and which columns of a table have room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.await_complete import AwaitComplete
from textual.dom import DOMNode
from textual.geometry import Region, Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.strip import Strip
from textual.widget import Widget

from capacity_tui.engine.printable import printable
from capacity_tui.tui.actions import Commanded, with_keys
from capacity_tui.tui.requests import Answered
from capacity_tui.tui.session import HasSession
from capacity_tui.tui.text import Line, left, right, to_ascii

if TYPE_CHECKING:
    from capacity_tui.tui.shown.results import TableColumn

Shown = TypeVar("Shown")
_NO_LINE = Line()
WHEEL = 3  # Lines, or items, that a notch of the mouse's wheel moves by


class Guarded(MessagePump):
    """Reports an exception of a handler and takes the next message; Textual's own loop would end for good.

    Answers of threads come here, and go to who asked, unless a newer request has outdated them.
    """

    def on_answered(self, event: Answered[object]) -> None:
        event.stop()
        event.deliver()

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            self.app._handle_exception(error)


class ClosesOnce(Guarded, Screen[ScreenResultType]):
    """A screen over another that is closed once, however many keys that close it are under way already.

    It stands behind the kind of screen among the bases, since Textual takes styles from the first.
    """

    is_answered = False  # whether it closes as soon as something is read, so that no key is for it any more

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the screen, unless it is closed."""
        return super().dismiss(result) if self.is_active else AwaitComplete.nothing()  # type: ignore[no-untyped-call]

    def show_lines(self) -> None:
        """Lay out what the screen shows, once its size is known; nothing where its widgets see to that."""

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_lines)


class _RoleStyles:
    """What roles add to the style of their widget, by the style sheet as it was read last.

    They are the same in all widgets: as component classes each of twenty would be styled anew in every widget whenever
    a screen comes up or the focus moves.
    """

    def __init__(self) -> None:
        self._rules: object = None
        self._styles: dict[str, Style] = {}

    def of(self, role: str, widget: Widget) -> Style:
        """Return what a role adds; raises KeyError where the style sheet has no such role."""
        sheet = widget.app.stylesheet
        if self._rules is not sheet.rules:
            self._rules, self._styles = sheet.rules, {}
        if role not in self._styles:
            node = DOMNode(classes=f"lines--{role}")
            node._attach(widget)
            sheet.apply(node, animate=False)
            if not node.styles.get_rules():
                raise KeyError(f"the style sheet has no role {role!r}")
            self._styles[role] = node.styles.partial_rich_style
        return self._styles[role]


_ROLE_STYLES = _RoleStyles()


class Lines(Guarded, Widget):
    """A list of lines that scrolls by whole lines."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._top = 0
        self._pinned = 0
        self._styles_by_role: dict[tuple[str, bool], Style] = {}
        self._rules: object = None  # the style sheet that it was painted by
        self._shown_in = Size()  # what the lines were laid out for

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown, with what is scrolled out of sight."""
        return self._lines

    @property
    def top(self) -> int:
        """Index of the first line in sight below those that stay."""
        return self._top + self._pinned

    @property
    def in_sight(self) -> tuple[Line, ...]:
        return tuple(self._line_at(y) for y in range(min(self.size.height, len(self._lines))))

    def show(self, lines: Sequence[Line], reveal: range | None = None, pinned: int = 0) -> None:
        before = [self._line_at(y) for y in range(self.size.height)]
        self._lines, self._shown_in = tuple(lines), self.size
        self._pinned = pinned if pinned < self.size.height else 0
        self._scroll_into_sight(reveal)
        if not before:
            # Out of sight there is no size, yet what was painted last would be shown again.
            self.refresh()
        for y, old in enumerate(before):
            if self._line_at(y) != old:
                self.refresh(Region(0, y, self.size.width, 1))

    def repaint(self) -> None:
        """Lay the lines out anew, and paint those that differ; nothing where no size makes them others."""

    def on_resize(self) -> None:
        self.repaint()

    def with_keys(self, text: str) -> str:
        """Return a text with a key, as the settings have it, in place of each action that it names in braces."""
        return with_keys(text, cast("HasSession", self.app).session.settings.keys)

    def keyed(self, content: Line) -> Line:
        """Return a line with its keys as the settings have them."""
        return Line(tuple(span._replace(text=self.with_keys(span.text)) for span in content.spans), content.selected)

    def scroll_lines(self, offset: int) -> None:
        start, height = self.top + offset, self.size.height - self._pinned
        self.show(self._lines, range(start, start + height), self._pinned)

    def render_line(self, y: int) -> Strip:
        if self._shown_in != self.size:  # of which Textual does not tell each time
            self._shown_in = self.size
            self.call_later(self.repaint)
        content = self._line_at(y)
        ascii_only = self.app.has_class("-ascii")
        segments = []
        # Neighbours of one style are one segment: each segment costs some 25 bytes on the wire.
        for role, run in groupby(content.spans, key=itemgetter(1)):
            text = printable("".join(span.text for span in run))
            segments.append(Segment(to_ascii(text) if ascii_only else text, self._style(role, content.selected)))
        return Strip(segments).adjust_cell_length(self.size.width, self._style("", content.selected))

    def notify_style_update(self) -> None:
        """Forget styles that a theme or a state has changed."""
        super().notify_style_update()
        self._styles_by_role.clear()
        if self._rules is not self.app.stylesheet.rules:
            self._rules = self.app.stylesheet.rules
            self.refresh()

    def index_at(self, y: int) -> int:
        return y if y < self._pinned else self._top + y

    def action_at(self, x: int, y: int) -> str:
        """Return the id of the action that a click on a cell does, empty for none."""
        for span in self._line_at(y).spans:
            x -= cell_len(span.text)
            if x < 0:
                return span.action
        return ""

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        if len(self._lines) > self.size.height:
            event.stop()
            self.scroll_lines(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        if len(self._lines) > self.size.height:
            event.stop()
            self.scroll_lines(-WHEEL)

    def _line_at(self, y: int) -> Line:
        index = self.index_at(y)
        return self._lines[index] if index < len(self._lines) else _NO_LINE

    def _scroll_into_sight(self, reveal: range | None) -> None:
        height = max(self.size.height, 1)
        top = self._top
        if reveal:
            top = min(max(top, reveal[-1] + 1 - height), reveal[0] - self._pinned)
        self._top = max(0, min(top, len(self._lines) - height))

    def _style(self, role: str, selected: bool) -> Style:
        style = self._styles_by_role.get((role, selected))
        if style is None:
            style = self.rich_style
            if role:
                style += _ROLE_STYLES.of(role, self)
            if selected:
                style += _ROLE_STYLES.of("cursor", self)
            self._styles_by_role[role, selected] = style
        return style


class Painted(Generic[Shown]):
    """What lines show: they are laid out anew once it is set."""

    def __init__(self, first: Shown) -> None:
        self._first = first

    def __set_name__(self, owner: type[Lines], name: str) -> None:
        self._name = name

    def __get__(self, lines: Lines, owner: type[Lines]) -> Shown:
        shown: Shown = lines.__dict__.get(self._name, self._first)
        return shown

    def __set__(self, lines: Lines, shown: Shown) -> None:
        lines.__dict__[self._name] = shown
        lines.repaint()


class DrawnLines(Lines):
    """Lines that are laid out for the size there is."""

    def draw(self, width: int) -> Sequence[Line]:
        raise NotImplementedError

    def repaint(self) -> None:
        if self.is_mounted and self.size:
            self.show(self.draw(self.size.width))


class ClickedLines(DrawnLines):
    """Lines of which some pieces do something when they are clicked."""

    def on_click(self, event: events.Click) -> None:
        action = self.action_at(event.x, event.y)
        if action and isinstance(self.screen, Commanded):
            self.screen.action_perform(action)


class Bar(ClickedLines):
    """One line that is laid out anew when its width changes."""

    def build(self, width: int) -> Line:
        raise NotImplementedError

    def draw(self, width: int) -> list[Line]:
        return [self.build(width)]


GAP = 2  # Cells between two columns


def fitted(widths: Sequence[int], ranks: Sequence[int], room: int) -> tuple[int, ...]:
    """Return the indices of the columns that are shown, in order.

    Args:
        widths: cells that each needs.
        ranks: 0 for what is never left out; of the others the highest goes first, of equals the one at the right.
    """
    kept = list(range(len(widths)))
    while sum(widths[index] + GAP for index in kept) - GAP > room:
        rank, last = max(((ranks[index], index) for index in kept), default=(0, 0))
        if rank == 0:
            break
        kept.remove(last)
    return tuple(kept)


def narrowed(widths: Sequence[int], room: int, least: int) -> tuple[int, ...]:
    """Return widths of columns that are in room together, cell by cell from the widest, none below ``least``."""
    sizes = list(widths)
    while sizes and sum(sizes) + GAP * (len(sizes) - 1) > room:
        widest = max(range(len(sizes)), key=sizes.__getitem__)
        if sizes[widest] <= least:
            break
        sizes[widest] -= 1
    return tuple(sizes)


def joined(texts: Sequence[str], widths: Sequence[int], at_right: Sequence[bool]) -> tuple[str, ...]:
    """Return texts in the widths of their columns, each but the last with the gap behind it."""
    columns = zip(texts, widths, at_right, strict=True)
    cells = [(right if flush else left)(text, width) for text, width, flush in columns]
    return tuple(cell + " " * GAP for cell in cells[:-1]) + tuple(cells[-1:])


class TableLayout(NamedTuple):
    """The columns of a table that there is room for."""

    indices: tuple[int, ...]  # of the columns
    widths: tuple[int, ...]  # how wide they are
    at_right: tuple[bool, ...]  # whether their texts stand at the right
    titles: tuple[str, ...]  # what stands over all columns
    widest: tuple[int, ...]  # how wide all columns are where there is room

    @classmethod
    def of(
        cls,
        columns: Sequence[TableColumn],
        rows: Sequence[Sequence[str]],
        room: int,
        *,
        most: int | None = None,
        least: int = 1,
        before: Sequence[int] = (),
    ) -> TableLayout:
        """Return the layout of rows in some room."""
        titles = tuple(column.title for column in columns)
        widths = [widest([title, *(row[index] for row in rows)]) for index, title in enumerate(titles)]
        widths = [max(pair) for pair in zip(widths, before or widths, strict=True)]
        widths = widths if most is None else [min(width, most) for width in widths]
        indices = fitted(widths, [column.rank for column in columns], room)
        shown = [widths[index] for index in indices]
        shown = shown if most is None else list(narrowed(shown, room, least))
        at_right = tuple(columns[index].is_number for index in indices)
        return cls(indices, tuple(shown), at_right, titles, tuple(widths))

    @property
    def heads(self) -> str:
        return self.text(self.titles)

    def cells(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return those texts of a row that are shown, in the widths of their columns."""
        return joined([texts[index] for index in self.indices], self.widths, self.at_right)

    def text(self, texts: Sequence[str]) -> str:
        return "".join(self.cells(texts))


def widest(texts: Sequence[str]) -> int:
    """Return the cells of the widest of some texts."""
    return max(map(cell_len, texts), default=0)
