"""The lines around every view: its name and tabs, the answer, a note on it, and the keys at the bottom."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.printable import printable
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import PANELS, VIEWS
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import MOVED, Line, Span, clip, fit, line, spread

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Column
from typing import TYPE_CHECKING

from capacity_tui.tui.actions import ACTIONS, Action, heard_in, key_codes, key_names
from capacity_tui.tui.widgets.lines import DrawnLines

if TYPE_CHECKING:
    from capacity_tui.engine.verdict import Verdict

_GAP = 2
_GAUGE = 10
# The order in which parts of the answer give way; what the figures say themselves is a ``rank`` of ``Headline``.
_RANGE, _CHANGES, _BAR, _MEMORY = 9, 4, 3, 2


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


class Tabs(Bar):
    """The views, and at the right the plan that all of them are about.

    Args:
        session: what every screen works with.
        view: the view that is shown.
    """

    def __init__(self, session: Session, view: str) -> None:
        super().__init__(id="tabs")
        self._session = session
        self._view = view

    def on_mount(self) -> None:
        """Follow the plan."""
        self._session.answers.subscribe(self, lambda _: self.repaint())

    def build(self, width: int) -> Line:
        """Lay the views out, or only the one that is shown, and as much of the plan's name as there is room for."""
        store = self._session.store
        comparison = store.comparison
        name = comparison.title if comparison else store.document.name if store.document else "capacity-tui"
        simulated = comparison.simulated if comparison else ""
        badges = (f" WHAT-IF · {simulated} ", " WHAT-IF ") if simulated else ("",)
        for spans, badge in product((self._tabs(tuple(VIEWS)), self._tabs((self._view,))), badges):
            room = width - cell_len(Line(spans).plain) - cell_len(badge) - _GAP
            if room >= cell_len(name):
                break
        title = Span(clip(name, max(room, 0)), "best")
        return spread(Line(spans), line(title, " ", Span(badge, "badge")), width)

    def _tabs(self, views: tuple[str, ...]) -> tuple[Span, ...]:
        marked = ((view.capitalize(), view == self._view) for view in views)
        return tuple(Span(f"[{name}]", "key") if is_shown else Span(f" {name} ", "label") for name, is_shown in marked)


class AnswerStrip(Bar):
    """What the plan comes to: verdict, memory, time, cost and what limits it.

    Args:
        session: what every screen works with.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(id="answer")
        self._session = session

    def on_mount(self) -> None:
        """Follow the answers."""
        self._session.answers.subscribe(self, lambda _: self.repaint())

    def build(self, width: int) -> Line:
        """Lay out what fits: what says least gives way first; verdict, time and cost never do."""
        store = self._session.store
        column = store.column
        if column is None:
            return line(Span(" estimating…" if store.document else " no plan yet", "dim"))
        changes = len(store.changes)
        counted = f"{changes} change{'' if changes == 1 else 's'} " if changes else ""
        ranks = sorted(
            {_RANGE, _CHANGES, _BAR, _MEMORY, *(headline.rank for headline in column.headlines)}, reverse=True
        )
        answer = Line()
        for short in (False, True):
            for limit in (max(ranks) + 1, *ranks):
                end = line(Span(counted, "accent")) if limit > _CHANGES else line()
                answer = Line(tuple(self._spans(column, limit, short)))
                if cell_len(answer.plain) + cell_len(end.plain) + bool(end.plain) <= width:
                    return self._toned(spread(answer, end, width) if end.plain else answer)
        return self._toned(fit(answer, width))

    def _spans(self, column: Column, limit: int, short: bool) -> Iterator[Span]:
        """Yield what ranks below a limit."""
        role = column.verdict.tone
        if column.is_pinned:
            yield Span(f" {column.mode}:", "accent")
        yield Span(" ", role)
        yield worded(column.verdict, column.verdict_brief if short else column.verdict_words)
        if column.usage is not None and limit > _MEMORY:
            yield Span(f" {column.usage.text}", "value")
            if column.usage.share is not None:
                if limit > _BAR:
                    yield Span(f" {gauge(column.usage.share, _GAUGE)}", role)
                yield Span(f" {column.usage.share:.0%}".replace("%", " %"), "value")
        for headline in column.headlines:
            if not headline.rank or headline.rank < limit:
                yield Span(f" · {headline.text}", "value" if headline.rank else "best")
                if headline.interval and limit > _RANGE:
                    yield Span(f" ({headline.interval})", "dim")

    def _toned(self, answer: Line) -> Line:
        """Dim numbers of an earlier plan."""
        if not self._session.store.is_stale:
            return answer
        return Line(tuple(Span(span.text, "dim") for span in answer.spans))


class NoteLine(Bar):
    """One line for what is to be said: the last message, what is wrong, or a hint. It is there also when it is empty.

    Args:
        session: what every screen works with.
    """

    HINT = f"Arrows move, + - step, enter types, 1-{len(PANELS)} panels, ? lists all keys, esc hides it"

    def __init__(self, session: Session) -> None:
        super().__init__(id="note")
        self._session = session
        self._status: Span | None = None

    def on_mount(self) -> None:
        """Listen to what is to be said."""
        self._session.status.subscribe(self, self._show_status)
        self._session.answers.subscribe(self, lambda _: self._renew())
        self._renew()

    def clear_status(self) -> None:
        """Say what stands again."""
        if self._status is not None:
            self._status = None
            self._renew()

    def build(self, width: int) -> Line:
        """Show the first note that there is."""
        note = self._note()
        return line(Span(clip(f" {printable(note.text)}", width), note.role)) if note else line()

    def _show_status(self, status: Span) -> None:
        self._status = status
        self._renew()

    def _renew(self) -> None:
        # The lowest terminals have no line to spare for nothing.
        self.set_class(self._note() is None, "-empty")
        self.repaint()

    def _note(self) -> Span | None:
        sources = (
            self._trouble,
            self._shortage,
            self._moved,
            self._left_behind,
            self._warning,
            self._hint,
            self._of_the_columns,
        )
        notes = (source() for source in sources)
        return self._status or next((note for note in notes if note is not None), None)

    def _trouble(self) -> Span | None:
        """Return why there are no new numbers."""
        trouble = self._session.trouble
        return Span(f"✗ {trouble.in_short}", "bad") if trouble else None

    def _shortage(self) -> Span | None:
        """Return which constraints the plan does not keep, and the best way out."""
        column = self._column
        if column is None or not column.reason or column.verdict.holds is not False:
            return None
        way = self._session.store.way_out
        out = f" → {way.verdict.words} (a): {way.title}" if way else ""
        return worded(column.verdict, f"{column.reason}{out}")

    def _moved(self) -> Span | None:
        """Return which other fields the last edit changed, and why."""
        store = self._session.store
        fields = store.document.fields() if store.document and self._column else ()
        moved = store.moved_along if fields else {}
        words = "; ".join(f"{field.label}: {moved[field.key]}" for field in fields if field.key in moved)
        return Span(f"{MOVED} also changed: {words}", "accent") if words else None

    def _left_behind(self) -> Span | None:
        """Return what an earlier run left behind while nobody has decided on it."""
        left = self._session.left_behind
        return Span(f"not saved when the program ended: {left}; O restores", "warn") if left else None

    def _warning(self) -> Span | None:
        """Return the gravest of what to know before relying on the plan."""
        column = self._column
        if column is not None and column.reason and column.verdict is Verdict.TIGHT:
            return worded(column.verdict, f"{column.verdict.words}: {column.reason}")
        notes = column.notes if column else ()
        texts = (": ".join(part for part in (note.title, note.saves or note.detail) if part) for note in notes)
        return next((Span(f"! {text}", "warn") for text in texts), None)

    @property
    def _column(self) -> Column | None:
        """The chosen column, None while its numbers are old."""
        return None if self._session.store.is_stale else self._session.store.column

    def _of_the_columns(self) -> Span | None:
        """Return what to know of the columns as a whole."""
        comparison = self._session.store.comparison
        return Span(comparison.remarks[0], "label") if comparison and comparison.remarks else None

    def _hint(self) -> Span | None:
        """Return how to begin, for whoever is here for the first time."""
        return Span(self.HINT, "value") if self._session.shows_hint else None
