"""What every view has in common: lines, panels, rows that are other plans; and going from one view to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from capacity_tui.tui.actions import FIGURE, VIEWS, Commanded, Commands, bindings
from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.text import Line
from capacity_tui.tui.widgets.answer_card import AnswerCard
from capacity_tui.tui.widgets.head import Footer, NoteLine, Tabs
from capacity_tui.tui.widgets.lines import Guarded
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.view import Document

ShowText: TypeAlias = Callable[[str, Callable[[int], list[Line]]], object]
"""Shows a text over the view: its title, and what builds its lines for a width."""

ShowPictures: TypeAlias = Callable[[str, Callable[[int], list[Line]], Callable[[], object]], object]
"""Shows pictures over the view: the same, and what has them written to files."""


def size_classes(**starts: int) -> list[tuple[int, str]]:
    """Return the style classes of a screen, each with the width or height in cells from which it holds."""
    return [(start, f"-{name.replace('_', '-')}") for name, start in starts.items()]


class ViewScreen(Commanded, Guarded, Screen[None]):
    """A full screen over the plan; what it shows stands between the lines that all views share.

    What it has no command for, such as undoing, the plan's own view does, which is always there.
    """

    VIEW: ClassVar[str] = ""  # Its name in ``VIEWS``
    AUTO_FOCUS: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = bindings("view")

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a view its keys."""
        if "BINDINGS" not in vars(cls):
            cls.BINDINGS = bindings(cls.VIEW)
        super().__init_subclass__(**options)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.topic = self.VIEW
        self.footer = Footer(session, self.VIEW)
        self._note = NoteLine(session, on_plan=self.VIEW == "plan")
        self.commands = {"view.back": self.back}
        if type(self).drawings is not ViewScreen.drawings:
            self.commands = {**self.commands, f"{self.VIEW}.picture": self._export_pictures}

    def compose(self) -> ComposeResult:
        """Put the body between the lines that all views share."""
        yield Tabs(self.session, self.VIEW)
        yield AnswerCard(self.session)
        yield self._note
        yield from self.body()
        yield self.footer

    def body(self) -> ComposeResult:
        raise NotImplementedError

    def back(self) -> None:
        self.session.show_view("plan")

    @property
    def back_does(self) -> str:
        """What ``back`` does next, in words that follow its key."""
        return "shows the plan"

    def show_text(
        self, title: str, build: Callable[[int], list[Line]], export: Callable[[], object] | None = None
    ) -> None:
        """Show a text over the view, laid out for its width; where it has pictures, they can be exported."""
        from capacity_tui.tui.views.dialogs.help import TextDialog

        self.app.push_screen(TextDialog(title, build, self.session.copy, export))

    def drawings(self) -> Iterator[tuple[str, str]]:
        """Yield what the view draws: titles, and SVG files of the same data."""
        yield from ()

    def _export_pictures(self) -> None:
        from capacity_tui.tui.views.dialogs.export import export_pictures

        export_pictures(self.session, self.VIEW, tuple(self.drawings()))

    def action_perform(self, name: str) -> None:
        """Do what an action asks for: here, in the plan's own view, or in the program; or explain a figure."""
        if name.startswith(FIGURE):
            self.session.figures.publish(name.removeprefix(FIGURE))
            return
        self.session.guide.take(name)
        for hearing in (self, self.app.screen_stack[0], self.app):
            if isinstance(hearing, Commanded) and name in hearing.commands:
                hearing.commands[name]()
                return

    def on_screen_resume(self) -> None:
        self._note.renew()

    def on_key(self, event: events.Key) -> None:
        """Stop saying what was said when the next key comes; while the views are listed, take the key for one."""
        self._note.clear_status()
        if self.footer.lists_views:
            event.stop()
            event.prevent_default()
            self.footer.lists_views = False
            if view := self.footer.view_of(event.key):
                self.session.show_view(view)


class PanelScreen(ViewScreen):
    """A view of panels, one of which has the keys, the one that it begins with first."""

    FOCUSES_LATER: ClassVar[bool] = False
    """Whether panels come into sight when they are gone to: what is out of sight cannot take the focus."""

    def __init__(self, session: Session, panels: Sequence[Panel]) -> None:
        super().__init__(session)
        self.panels = tuple(panels)  # all of them, in their order
        self.current = self.panels[0]  # the one that has the keys

    @property
    def panel_commands(self) -> Commands:
        return {f"panel.{panel.id}": partial(self.go_to, panel) for panel in self.panels}

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Panel):
            self.mark_current(event.widget)

    def on_prompt_closed(self) -> None:
        self.current.focus()

    def about(self) -> tuple[str, str]:
        return self.current.about()

    def go_to(self, panel: Panel) -> None:
        self.mark_current(panel)
        if self.FOCUSES_LATER:
            self.call_after_refresh(panel.focus)
        else:
            panel.focus()

    def go_around(self, offset: int) -> None:
        self.go_to(self.panels[(self.panels.index(self.current) + offset) % len(self.panels)])

    def mark_current(self, panel: Panel) -> None:
        """Mark a panel, name its keys, and have the help speak of it."""
        self.current = panel
        self.topic = panel.TITLE.lower()
        self.footer.panel = panel.scope
        for other in self.panels:
            other.set_class(other is panel, "-current")
            other.repaint()


def screen_of(view: str, session: Session) -> ViewScreen:
    """Return the screen of a view: of ``find`` it is ``FindScreen`` in ``find/screen.py``, loaded when first shown."""
    module = import_module(f"{__package__}.{view}.screen")
    screen: ViewScreen = getattr(module, f"{view.capitalize()}Screen")(session)
    return screen


class Views:
    """Shows one view of the plan at a time; one that is left goes on, and is found as it was."""

    def __init__(self, app: App[None], session: Session) -> None:
        self._app = app
        self._session = session

    @property
    def shown(self) -> str:
        return next(screen.VIEW for screen in reversed(self._app.screen_stack) if isinstance(screen, ViewScreen))

    def choose(self) -> None:
        screen = self._app.screen
        if isinstance(screen, ViewScreen):
            screen.footer.lists_views = True

    def show_next(self, offset: int) -> None:
        """Show the view that many places further, around the end."""
        names = tuple(VIEWS)
        self.show(names[(names.index(self.shown) + offset) % len(names)])

    def show(self, view: str) -> None:
        """Show a view, unless it is shown or a dialog lies over the one that is."""
        if view == self.shown or not isinstance(self._app.screen, ViewScreen):
            return
        self._session.guide.take(f"view.{view}")
        if view == "plan":
            self._app.pop_screen()
            return
        if not self._app.is_screen_installed(view):
            self._app.install_screen(screen_of(view, self._session), view)
        if self.shown == "plan":
            self._app.push_screen(view)
        else:
            self._app.switch_screen(view)


class PlanRow(Protocol):
    """A row that is another plan."""

    @property
    def change(self) -> Mapping[str, object]:
        """What makes it of the plan."""

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """What tells it from other rows."""


class PlanRows(Protocol):
    """A table of them."""

    taken: tuple[tuple[str, str], ...]  # key of the row that was taken over last
    is_old: bool  # whether the rows are those of another plan

    @property
    def row(self) -> PlanRow | None:
        """The row under the cursor."""

    def chosen(self) -> Sequence[PlanRow]:
        """Return the rows that are marked, or the one under the cursor."""

    def repaint(self) -> None:
        """Show them as they are now."""


class RowActions:
    """Changes the plan by rows of the table; each change is one edit that can be undone."""

    def __init__(self, session: Session, screen: ViewScreen, table: PlanRows, keep: Callable[[Document], None]) -> None:
        self._session = session
        self._screen = screen
        self._table = table
        self._keep = keep

    def take(self) -> None:
        row, document = self._table.row, self._session.store.document
        if row is None or document is None or self._table.is_old:
            return
        changed = document.changed(row.change)
        self._keep(changed)
        if changed == document:
            self._session.say("that is the plan already")
            return
        self._table.taken = row.key
        self._table.repaint()
        self._session.change_to(changed, next(iter(row.change)))
        keys = f"{{edit.undo}} undoes it, {{view.back}} {self._screen.back_does}"
        self._session.say(f"applied to the plan; {keys}", "good")

    def pin(self) -> None:
        """Put the rows that are marked, or the one under the cursor, beside the plan."""
        rows, document = self._table.chosen(), self._session.store.document
        if not rows or document is None or self._table.is_old:
            return

        def work(_: Request[Document]) -> Document:
            after = document
            for row in rows:
                after = after.pinned_with(row.change)
            return after

        self._session.ask(self._screen, "pin", work, partial(self._take_pinned, document))

    def _take_pinned(self, before: Document, after: Document) -> None:
        """Take up the plan with others beside it, unless it was edited meanwhile."""
        from capacity_tui.tui.shown.results import PINS_KEY

        if before != self._session.store.document:
            self._session.say("the plan has changed meanwhile; {pin.toggle} pins it now", "warn")
            return
        names = [name for name in after.pins() if name not in before.pins()]
        self._keep(after)
        self._session.change_to(after, PINS_KEY)
        are = "is" if len(names) == 1 else "are"
        self._session.say(f"{', '.join(names)} {are} pinned beside the plan; {{edit.undo}} undoes that", "good")
