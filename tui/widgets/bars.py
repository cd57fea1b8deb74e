"""The lines above and below the panels: header, footer and the hint of the first run."""

from __future__ import annotations

from rich.cells import cell_len

from capacity_tui.engine.api import printable
from capacity_tui.tui.actions import ACTIONS, PANELS, Action, key_names
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line, Span, clip, line
from capacity_tui.tui.widgets.lines import Lines

_NAME = " capacity-tui "


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


class Header(Bar):
    """Name of the plan, the SIM badge and how many fields were changed."""

    def __init__(self) -> None:
        super().__init__(id="header")
        self._title = ""
        self._simulated = ""
        self._changes = 0

    def show_plan(self, title: str, simulated: str, changes: int) -> None:
        """Show another state of the plan."""
        self._title, self._simulated, self._changes = title, simulated, changes
        self.repaint()

    def build(self, width: int) -> Line:
        """Lay out name, plan, badge and changes; the badge outlives the rest."""
        badge = f" SIM {self._simulated} " if self._simulated else ""
        plural = "" if self._changes == 1 else "s"
        changes = f" {self._changes} change{plural} " if self._changes else ""
        name = _NAME if width >= 70 else " "
        room = width - cell_len(name) - cell_len(badge) - cell_len(changes)
        if room < 12:
            badge, changes = clip(badge, width // 2), ""
            room = width - cell_len(name) - cell_len(badge)
        title = clip(self._title, max(room - 1, 0))
        gap = " " * max(room - cell_len(title), 0)
        return line(Span(name, "key"), Span(title, "best"), gap, Span(badge, "badge"), Span(changes, "accent"))


class Footer(Bar):
    """The most useful keys, or for a while what the program has to say.

    Args:
        session: who has something to say; its settings know other keys.
        scope: the screen whose keys are shown, with those of the program that it leaves.
    """

    def __init__(self, session: Session, scope: str) -> None:
        super().__init__(id="footer")
        self._session = session
        self._keymap = session.settings.keys
        self._scope = scope
        self._panel = ""
        self._status: Span | None = None

    def on_mount(self) -> None:
        """Listen to what is to be said."""
        self._session.status.subscribe(self, self._show_status)

    def name_keys_of(self, panel: str) -> None:
        """Name the keys of another panel besides those of the screen."""
        self._panel = panel
        self.repaint()

    def clear_status(self) -> None:
        """Show the keys again."""
        if self._status is not None:
            self._status = None
            self.repaint()

    def build(self, width: int) -> Line:
        """Lay out as many keys as fit, whole ones only; an ellipsis says that there are more."""
        if self._status is not None:
            return line(Span(clip(self._status.text, width), self._status.role))
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

    def _show_status(self, status: Span) -> None:
        self._status = Span(f" {printable(status.text)}", status.role)
        self.repaint()

    def _hints(self) -> list[tuple[str, str]]:
        hints = []
        scopes = (self._scope, self._panel)
        own_keys = {key for action in ACTIONS if action.scope in scopes for key in self._keys(action)}
        for action in ACTIONS:
            key = self._keys(action)[0]
            is_heard = action.scope in scopes or (action.scope == "app" and key not in own_keys)
            if not action.footer or not is_heard:
                continue
            own, space, name = action.footer.rpartition(" ")
            is_default = action.id not in self._keymap
            hints.append((own if space and is_default else key, name))
        return hints

    def _keys(self, action: Action) -> tuple[str, ...]:
        return key_names(action, self._keymap)


class Hint(Bar):
    """One line for whoever is here for the first time."""

    TEXT = (
        f" Arrows move, + and - change a value, enter types it, 1 to {len(PANELS)} choose a panel, ? lists all keys. "
    )

    def __init__(self) -> None:
        super().__init__(id="hint")

    def build(self, width: int) -> Line:
        """Lay the hint out with the key that dismisses it."""
        end = "esc hides this "
        room = width - cell_len(end)
        return line(Span(clip(self.TEXT, room).ljust(room), "value"), Span(end, "dim"))
