"""The lines around every view: its name and tabs, a note on the answer, and the keys at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

from rich.cells import cell_len

from capacity_tui.engine.printable import printable
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import ACTIONS, VIEWS, Action, heard_in, key_codes, key_names
from capacity_tui.tui.session import Session
from capacity_tui.tui.text import MOVED, Line, Span, clip, fit, line, spread
from capacity_tui.tui.widgets.lines import Bar, Painted

if TYPE_CHECKING:
    from capacity_tui.tui.shown.comparison import Column, Row

_GAP = 2
_SHORTEST_NAME = 14  # Cells that the plan's name has before views stand for themselves by less than their names
_TWICE, _MANY_TIMES = 2.0, 100  # From this ratio on a difference is given as a factor
_ALWAYS = {"app.help", "app.quit", "view.choose"}


class Footer(Bar):
    """The most useful keys of a view as the settings have them, or the views with theirs."""

    panel = Painted("")  # whose keys are named besides those of the view
    lists_views = Painted(False)  # whether the views stand in place of the keys

    def __init__(self, session: Session, view: str) -> None:
        super().__init__(id="footer")
        self._keymap = session.settings.keys
        self._view = view

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
        for index, (key, name, action) in enumerate(hints):
            room -= cell_len(key) + cell_len(name) + 3
            if room < (0 if index == len(hints) - 1 else 2):
                spans.append(Span(" …", "dim", "app.help"))
                break
            spans += [Span(f" {key}", "key", action), Span(f" {name} ", "label", action)]
        return Line(tuple(spans))

    def _views(self) -> Iterator[Span]:
        yield Span(" View:", "heading")
        for name, action in _view_actions():
            yield Span(f"  {key_names(action, self._keymap)[0]}", "key", action.id)
            yield Span(f" {name.capitalize()}", "dim" if name == self._view else "label", action.id)
        yield Span("   any other key: stay here", "dim")

    def _hints(self) -> list[tuple[str, str, str]]:
        """Return key, name and action of what is worth naming."""
        hints = []
        own_keys = {key for action in ACTIONS if action.scope == self.panel for key in key_names(action, self._keymap)}
        for action in sorted(ACTIONS, key=self._rank):
            key = key_names(action, self._keymap)[0]
            is_heard = action.scope == self.panel or (action.scope in heard_in(self._view) and key not in own_keys)
            if not action.footer or not is_heard:
                continue
            own, space, name = action.footer.rpartition(" ")
            is_default = action.id not in self._keymap
            hints.append((own if space and is_default else key, name, action.id))
        return hints

    def _rank(self, action: Action) -> int:
        """Return how far at the right a key stands: after what always holds come the keys of panel and view."""
        return 0 if action.id in _ALWAYS else 1 if action.scope in (self.panel, self._view, "asking") else 2


def _view_actions() -> list[tuple[str, Action]]:
    actions = {action.id: action for action in ACTIONS}
    return [(name, actions[f"view.{name}"]) for name in VIEWS]


_FULL, _EMPTY = "▇", "░"


def gauge(share: float, width: int) -> str:
    """Return a bar; any share above nothing fills a cell, and nothing below all of it fills the last one."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    if 0.0 < share < 1.0 and width > 1:
        filled = min(max(filled, 1), width - 1)
    return _FULL * filled + _EMPTY * (width - filled)


def mark_of(verdict: Verdict) -> Span:
    return Span(verdict.sign, verdict.tone)


def worded(verdict: Verdict, words: str = "") -> Span:
    """Return the sign of a verdict before its words, or before what they say of one plan."""
    return Span(f"{verdict.sign} {words or verdict.words}", verdict.tone)


def _shortened(name: str, room: int) -> str:
    """Return the name of a plan in so many cells: model and hardware stay, what is between them and the price go."""
    parts = name.split(_BETWEEN)
    if cell_len(name) <= room or room < _SHORTEST_NAME or len(parts) < _PARTS:
        return clip(name, room)
    model, hardware = parts[0], parts[-1]
    if cell_len(f"{model}{_BETWEEN}{hardware}") <= room:
        return f"{model}{_BETWEEN}{hardware}"
    hardware = clip(hardware.partition(" $")[0], max(room // 2, room - cell_len(model) - cell_len(_BETWEEN)))
    return clip(model, room - cell_len(hardware) - cell_len(_BETWEEN)) + _BETWEEN + hardware


_BETWEEN, _PARTS = " · ", 3  # Between model, task and hardware in the name of a plan


class Tabs(Bar):
    """The views, the shown one marked, and at the right the plan that all of them are about."""

    def __init__(self, session: Session, view: str) -> None:
        super().__init__(id="tabs")
        self._session = session
        self._view = view

    def on_mount(self) -> None:
        self._session.answers.subscribe(self, lambda _: self.repaint())

    def build(self, width: int) -> Line:
        """Lay the views out, all of them at any width, and as much of the plan's name as there is room for."""
        store = self._session.store
        comparison = store.comparison
        name = comparison.title if comparison else store.document.name if store.document else "capacity-tui"
        simulated = comparison.simulated if comparison else ""
        badges = (f" WHAT-IF · {simulated} ", " WHAT-IF ") if simulated else ("",)
        least = min(cell_len(name), _SHORTEST_NAME)
        for tabs, badge in product((self._tabs(" "), self._tabs(""), self._letters()), badges):
            room = width - cell_len(Line(tabs).plain) - cell_len(badge) - _GAP
            if room >= (cell_len(name) if badge != badges[-1] else least):
                break
        title = Span(_shortened(name, max(room, 0)), "best")
        return spread(Line(tabs), line(title, " ", Span(badge, "badge")), width)

    def _tabs(self, side: str) -> tuple[Span, ...]:
        """Return the names of the views, the one that is shown in brackets."""
        spans = []
        for view in VIEWS:
            is_shown = view == self._view
            name = f"[{view.capitalize()}]" if is_shown else f"{side}{view.capitalize()}{side or ' '}"
            spans.append(Span(name, "key" if is_shown else "label", f"view.{view}"))
        return tuple(spans)

    def _letters(self) -> tuple[Span, ...]:
        """Return the name of the view that is shown, and of the others the keys that stand for them."""
        return tuple(
            Span(f"[{view.capitalize()}]", "key", f"view.{view}")
            if view == self._view
            else Span(f" {key}", "label", f"view.{view}")
            for view, key in VIEWS.items()
        )


class NoteLine(Bar):
    """One line for what is to be said: the last message, what is wrong, or a hint. It is there when empty too."""

    def __init__(self, session: Session, *, on_plan: bool = True) -> None:
        super().__init__(id="note")
        self._session = session
        self._on_plan = on_plan
        self._status: Span | None = None
        self._seen = -1

    def on_mount(self) -> None:
        self._session.status.subscribe(self, self._show_status)
        self._session.answers.subscribe(self, lambda _: self.renew())
        self.renew()

    def clear_status(self) -> None:
        """Say what stands again, now that another key came."""
        if self._session.guide.go_on():
            self._session.end_guide()
        self._seen = self._session.store.revision
        if self._status is not None or not self._session.guide.is_over:
            self._status = None
            self.renew()

    def build(self, width: int) -> Line:
        """Show the first note that there is, in the longest of its wordings that has room."""
        note = self._note()
        if not note:
            return line()
        wordings = [span._replace(text=f" {printable(self.with_keys(span.text))}") for span in note]
        shown = next((span for span in wordings if cell_len(span.text) <= width), wordings[-1])
        return line(shown._replace(text=clip(shown.text, width)))

    def _show_status(self, status: Span) -> None:
        self._status = status
        self.renew()

    def renew(self) -> None:
        """Say what is to be said by now, if anything."""
        # The lowest terminals have no line to spare for nothing.
        self.set_class(not self._note(), "-empty")
        self.repaint()

    def _note(self) -> tuple[Span, ...]:
        """Return what is to be said, the longest wording first; nothing where there is nothing to say."""
        if self._status:
            return (self._status,)
        if trouble := self._trouble():
            return (trouble,)
        changed = self._changed()  # and what to try next, for whoever is here for the first time:
        hint = tuple(Span(text, "value") for text in self._session.guide.wordings(on_plan=self._on_plan))
        if changed and not (hint and self._seen == self._session.store.revision):
            return changed
        if hint and self._session.guide.has_begun:
            return hint
        if note := self._first_of(self._shortage, self._moved, self._left_behind, self._warning):
            return note
        return hint or self._first_of(self._of_the_columns)

    @staticmethod
    def _first_of(*sources: Callable[[], Span | None]) -> tuple[Span, ...]:
        return next(((note,) for source in sources if (note := source())), ())

    def _trouble(self) -> Span | None:
        """Return why there are no new numbers."""
        trouble = self._session.trouble
        return Span(f"✗ {trouble.in_short}", "bad") if trouble else None

    def _changed(self) -> tuple[Span, ...]:
        """Return what the last edit did to the figures of the card, then the best way out or what it moved along."""
        column, before = self._column, self._session.store.before_edit
        if column is None or before is None:
            return ()
        label, old, new = self._session.store.last_edit
        edit = f"{label} {old or '–'} → {new or '–'}: " if label and old != new else ""
        keys = (column.usage.key if column.usage else "", *(headline.key for headline in column.headlines))
        pairs = [(before.row(key), column.row(key)) for key in keys]
        moved = [(old, new) for old, new in pairs if old and new and old.text != new.text]
        is_other = before.verdict is not column.verdict
        verdict = [f"{before.verdict.words} → {column.verdict.words}"] if is_other else []
        full, short = (
            " · ".join([*verdict, *(_difference(old, new, in_full) for old, new in moved)]) for in_full in (True, False)
        )
        if not full:
            return ()
        short_of, moved_along = self._shortage(), self._moved()
        end = short_of or moved_along
        more = f" · {end.text}" if end else ""
        texts = (f"{edit}{full}{more}", f"{edit}{short}{more}", f"{short}{more}")
        spans = tuple(Span(text, column.verdict.tone if verdict or short_of else "value") for text in texts)
        return (*spans, short_of) if short_of else spans

    def _shortage(self) -> Span | None:
        """Return which constraints the plan does not keep, and the best way out."""
        column = self._column
        if column is None or not column.reason or column.verdict.holds is not False:
            return None
        way = self._way_out()
        return worded(column.verdict, f"{column.reason}{f' {way.text}' if way else ''}")

    def _way_out(self) -> Span | None:
        way = self._session.store.way_out
        return Span(f"→ {way.verdict.words} ({{advice.apply}}): {way.title}", "bad") if way else None

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
        note = f"unsaved changes from the last session: {left}; {{file.restore}} restores"
        return Span(note, "warn") if left else None

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


def _difference(before: Row, after: Row, in_full: bool) -> str:
    """Return what became of a figure: both values and by how much they differ, or its name and the difference."""
    share = after.share_above(before)
    ratio = "" if share is None else _ratio_text(1 + share)
    if in_full:
        return f"{before.text} → {after.text}{f' ({ratio})' if ratio else ''}"
    return f"{after.brief or after.label} {ratio or after.text}"


def _ratio_text(ratio: float) -> str:
    """Return how often a figure stands against what it was: in percent, from twice on as a factor, which has an end."""
    if ratio < _TWICE:
        return f"{100 * (ratio - 1):+.0f} %"
    return f"×{ratio:.1f}" if ratio < _MANY_TIMES else f"≥×{_MANY_TIMES}"
