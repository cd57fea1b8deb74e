"""Lines of one row, and those at the bottom of each view: its keys, or the views to go to."""

from __future__ import annotations

from rich.cells import cell_len
from textual import events
from textual.widget import Widget

from capacity_tui.tui.actions import ACTIONS, VIEWS, Action, key_codes, key_names
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line, Span, fit
from capacity_tui.tui.widgets.lines import Lines


class Bar(Lines):
    """One line that is laid out anew when its width changes."""

    def repaint(self) -> None:
        """Paint the line if it differs."""
        if self.is_mounted and self.size:
            self.show([self.build(self.size.width)])

    def build(self, width: int) -> Line:
        """Return the line for a width."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Lay the line out for the new width."""
        self.repaint()


class Footer(Bar):
    """The most useful keys.

    Args:
        session: its settings know other keys.
        scope: the view whose keys are shown, with those of every view and of the program.
    """

    def __init__(self, session: Session, scope: str) -> None:
        super().__init__(id="footer")
        self._keymap = session.settings.keys
        self._scope = scope
        self._panel = ""

    def name_keys_of(self, panel: str) -> None:
        """Name the keys of another panel besides those of the view."""
        self._panel = panel
        self.repaint()

    def build(self, width: int) -> Line:
        """Lay out as many keys as fit, whole ones only; an ellipsis says that there are more."""
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

    def _hints(self) -> list[tuple[str, str]]:
        hints = []
        own_keys = {key for action in ACTIONS if action.scope == self._panel for key in self._keys(action)}
        for action in ACTIONS:
            key = self._keys(action)[0]
            is_heard = action.scope == self._panel or (
                action.scope in {"app", "view", self._scope} and key not in own_keys
            )
            if not action.footer or not is_heard:
                continue
            own, space, name = action.footer.rpartition(" ")
            is_default = action.id not in self._keymap
            hints.append((own if space and is_default else key, name))
        return hints

    def _keys(self, action: Action) -> tuple[str, ...]:
        return key_names(action, self._keymap)


class ViewStrip(Bar, can_focus=True):
    """Lists the views with their keys in place of the footer, and takes the next key, whatever it is.

    Args:
        session: is told which view is wanted; its settings know other keys.
        view: the view that is shown.
    """

    def __init__(self, session: Session, view: str) -> None:
        super().__init__(id="views")
        self._session = session
        self._view = view
        self._before: Widget | None = None

    def choose(self) -> None:
        """Take the next key."""
        if not self.has_class("-open"):
            self._before = self.screen.focused
            self.screen.add_class("-choosing")
            self.add_class("-open")
        # At once, so that what is typed next is not taken for commands.
        self.screen.set_focus(self)

    def build(self, width: int) -> Line:
        """Lay the views out."""
        spans = [Span(" View:", "heading")]
        for name, action in self._views():
            role = "dim" if name == self._view else "label"
            spans += [Span(f"  {self._keys(action)[0]}", "key"), Span(f" {name.capitalize()}", role)]
        return fit(Line((*spans, Span("   any other key: stay here", "dim"))), width)

    def on_key(self, event: events.Key) -> None:
        """Go to the view of a key; any other key only closes the strip."""
        event.stop()
        event.prevent_default()
        wanted = next(
            (name for name, action in self._views() if event.key in key_codes(action, self._session.settings.keys)), ""
        )
        self._close()
        if wanted:
            self._session.show_view(wanted)

    def on_blur(self) -> None:
        """Close where the focus was taken away."""
        self._close(refocus=False)

    def _close(self, refocus: bool = True) -> None:
        if not self.has_class("-open"):
            return
        self.remove_class("-open")
        self.screen.remove_class("-choosing")
        if refocus:
            self.screen.set_focus(self._before)

    def _views(self) -> list[tuple[str, Action]]:
        actions = {action.id: action for action in ACTIONS}
        return [(name, actions[f"view.{name}"]) for name in VIEWS]

    def _keys(self, action: Action) -> tuple[str, ...]:
        return key_names(action, self._session.settings.keys)
