"""Panel 4: where the number under the cursor comes from, and what would improve the plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.dom import DOMNode

from capacity_tui.engine.record import dataclass
from capacity_tui.tui.actions import ADVICE_APPLIED, Commands
from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.text import Line, Span, clip, fit, fold, left, line, spread, wrap
from capacity_tui.tui.widgets.head import mark_of
from capacity_tui.tui.widgets.lines import Painted
from capacity_tui.tui.widgets.panel import Findable, Panel

if TYPE_CHECKING:
    from capacity_tui.engine.present import ExplanationText, FormulaInput
    from capacity_tui.engine.present.pictures import Picture
    from capacity_tui.tui.shown.comparison import Advice

_BETWEEN_PAGES = " ▸ "
_NARROWEST_PICTURE = 40


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One line of an explanation, and the number it tells of, which can be followed."""

    line: Line
    entry: FormulaInput | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """An explanation, and where the cursor stood on it."""

    explanation: ExplanationText
    cursor: int = 0


class Why(Panel):
    """Formula, the numbers put into it, sources, assumptions and the strongest lever; each number opens."""

    NUMBER = 4
    TITLE = "Why"
    KEYS = "{why.follow} follows, {why.back} goes back"
    NOTHING = "Choose a row of panel 3 to see where its number comes from."

    def __init__(self) -> None:
        super().__init__()
        self.explanation: ExplanationText | None = None
        self._trail: tuple[Page, ...] = ()
        self._entries: Sequence[EntryLine] = ()

    def show_explanation(self, explanation: ExplanationText | None) -> None:
        if explanation == self.explanation and not self._trail:
            return
        self._trail = ()
        self._show(explanation)

    def open(self, explanation: ExplanationText) -> None:
        """Explain a number that the one shown was made from; ``back`` returns."""
        if self.explanation is not None:
            self._trail = (*self._trail, Page(self.explanation, self.cursor))
            self._show(explanation)

    def back(self) -> bool:
        """Return to the number before; False where there is none."""
        if not self._trail:
            return False
        *before, last = self._trail
        self._trail = tuple(before)
        self._show(last.explanation, last.cursor)
        return True

    @property
    def is_followed(self) -> bool:
        """Whether a number was opened from another one."""
        return bool(self._trail)

    @property
    def entry(self) -> FormulaInput | None:
        """The number under the cursor, None on a line that tells of none."""
        return self._entries[self.cursor].entry if self.cursor < len(self._entries) else None

    def build(self, width: int) -> tuple[list[Line], range | None]:
        if self.explanation is None:
            self._entries = ()
            return [line(Span(self.NOTHING, "dim"))], None
        self._entries = entry_lines(self.explanation, width, self.app.has_class("-ascii"), self._path)
        at = min(self.cursor, len(self._entries) - 1) if self.is_current else -1
        lines = [Line(entries.line.spans, selected=index == at) for index, entries in enumerate(self._entries)]
        return lines, range(at, at + 1) if at >= 0 else None

    def item_count(self) -> int:
        return len(self._entries)

    def summary(self) -> Line:
        if self.explanation is None:
            return line()
        return line(Span(f"{self.explanation.title} ", "label"), Span(self.explanation.formula, "value"))

    @property
    def _path(self) -> tuple[str, ...]:
        return tuple(page.explanation.title for page in self._trail)

    def _show(self, explanation: ExplanationText | None, cursor: int = 0) -> None:
        self.explanation, self.cursor = explanation, cursor
        self.repaint()


def explain_lines(explanation: ExplanationText, width: int, ascii_only: bool) -> list[Line]:
    """Return an explanation as lines, the most useful first."""
    return [entries.line for entries in entry_lines(explanation, width, ascii_only)]


def entry_lines(
    explanation: ExplanationText, width: int, ascii_only: bool, path: tuple[str, ...] = ()
) -> list[EntryLine]:
    """Return an explanation as lines with the numbers they tell of.

    Args:
        ascii_only: whether pictures are drawn with ASCII characters alone.
        path: titles of the explanations that led here.
    """
    head = line(Span(explanation.title, "heading"))
    result = " ".join(part for part in (explanation.result, explanation.interval) if part)
    lines = [spread(head, line(Span(result, "best")), width)]
    if result and result not in lines[0].plain:
        lines = [fit(head, width), line(Span(result, "best"))]
    if path:
        lines.insert(0, fit(line(Span(_BETWEEN_PAGES.join(path) + _BETWEEN_PAGES, "dim")), width))
    lines += [line(Span(text, "value")) for text in wrap(_formula(explanation.formula), width, "  ")]
    entries = [EntryLine(shown) for shown in lines]
    entries += _input_lines(explanation.inputs, width)
    if explanation.picture is not None and width >= _NARROWEST_PICTURE:
        entries += [EntryLine(shown) for shown in picture_text(explanation.picture, width, ascii_only)]
    for remark in explanation.remarks:
        entries += _labelled("note", remark, width, "value")
    if explanation.lever:
        entries += _labelled("lever", explanation.lever, width, "accent")
    for step in explanation.steps:
        entries += _labelled("with", f"{_formula(step.formula)}  ({step.result})", width, "value")
        entries += _input_lines(step.inputs, width)
    for assumption in explanation.assumptions:
        entries += _labelled("assumed", assumption, width, "warn")
    for source in explanation.sources:
        entries += _labelled("source", source, width, "dim")
    return entries


def picture_text(picture: Picture, width: int, ascii_only: bool) -> list[Line]:
    from capacity_tui.engine.present.pictures import picture_lines

    drawn = picture_lines(picture, width, ascii_only)
    return [line(Span(part, "value")) for text in drawn for part in fold(text, width)]


def _input_lines(inputs: tuple[FormulaInput, ...], width: int) -> list[EntryLine]:
    names = max((cell_len(entry.name) for entry in inputs), default=0)
    texts = max((cell_len(entry.text) for entry in inputs), default=0)
    names = min(names, width // 2)
    return [EntryLine(_input_line(entry, names, texts, width), entry) for entry in inputs]


def _input_line(entry: FormulaInput, names: int, texts: int, width: int) -> Line:
    room = width - names - texts - 6
    source = Span(left(entry.source, room).rstrip(), "dim") if room > 3 else Span("")
    return line(
        Span("▸ " if entry.step or entry.key else "  ", "accent"),
        Span(left(entry.name, names), "label"),
        "  ",
        Span(f"{entry.text:>{texts}}", "value"),
        "  ",
        source,
    )


def _formula(text: str) -> str:
    """Return a formula with the dot of products, which is a star in ASCII; the middle dot is a dash there."""
    return text.replace("·", "⋅")


def _labelled(label: str, text: str, width: int, role: str) -> list[EntryLine]:
    first, *rest = wrap(text, width - 9) or [""]
    lines = [line(Span(f"{label:<8} ", "label"), Span(first, role))]
    return [EntryLine(shown) for shown in (*lines, *(line(" " * 9, Span(more, role)) for more in rest))]


_TONES = {1: "good", 0: "dim", -1: "bad"}
_INDENT = 4


class AdviceList(Panel):
    """Advice, the best first; the one that a key takes is marked."""

    NUMBER = 6
    TITLE = "Advice"
    KEYS = "{advice.apply} apply"
    subject = Painted("")  # what the advice is on, where that is not the chosen column

    def __init__(self) -> None:
        super().__init__()
        self._advice: tuple[Advice, ...] | None = None
        self._items: list[int] = []

    @property
    def chosen(self) -> Advice | None:
        return self._advice[self.cursor] if self._advice else None

    def show_advice(self, advice: tuple[Advice, ...] | None, *, stale: bool, urgent: bool = False) -> None:
        self.set_class(urgent, "-urgent")
        if (advice, stale) != (self._advice, self.is_old):
            if advice != self._advice:
                self.cursor = 0
            self._advice, self.is_old = advice, stale
            self.repaint()

    def about(self) -> tuple[str, str]:
        if self.chosen is None:
            return "", ""
        change = ", ".join(f"{key} to {value}" for key, value in self.chosen.change.items())
        meaning = f"It sets {change}, as one edit that {{edit.undo}} undoes. {self.chosen.caution}"
        return self.chosen.title, meaning.rstrip()

    def findable(self) -> Sequence[Findable]:
        return [Findable(advice.title, tuple(advice.change), advice.caution) for advice in self._advice or ()]

    def item_count(self) -> int:
        return len(self._advice or ())

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the advice out, each in a line where there is room, else with what it does below it."""
        if not self._advice:
            message = "looking for improvements…" if self._advice is None else "no improvement found"
            return [line(Span(clip(message, width), "dim"))], None
        lines: list[Line] = []
        self._items = []
        reveal = range(1)
        for index, advice in enumerate(self._advice):
            shown = self._lines_of(advice, index, width)
            if index == self.cursor:
                reveal = range(len(lines), len(lines) + len(shown))
            lines += shown
            self._items += [index] * len(shown)
        return lines, reveal

    def summary(self) -> Line:
        return self._lines_of(self._advice[0], 0, 200)[0] if self._advice else line()

    def edge(self) -> str:
        count = self.item_count()
        return " · ".join(part for part in (self.subject, f"{self.cursor + 1} of {count}" if count else "") if part)

    def _lines_of(self, advice: Advice, index: int, width: int) -> list[Line]:
        here = index == self.cursor
        mark = mark_of(advice.verdict)
        sign = Span(f"{mark.text} ", self.toned(mark.role))
        key = self.with_keys("{advice.apply} ") if here else "  "
        head = [Span(key, "key"), sign, Span(advice.title, self.toned("value"))]
        effects = self._effects(advice)
        selected = here and self.is_current
        whole = line(*head, Span(": ", "dim"), *effects, selected=selected)
        if cell_len(whole.plain) <= width:
            lines = [whole]
        else:
            lines = [fit(line(*head, selected=selected), width)]
            lines += [fit(line(" " * _INDENT, *row, selected=selected), width) for row in _rows(effects, width)]
        if here and advice.caution:
            more = wrap(advice.caution, width - _INDENT)
            lines += [line(" " * _INDENT, Span(text, self.toned("warn")), selected=selected) for text in more]
        return lines

    def _effects(self, advice: Advice) -> list[Span]:
        spans: list[Span] = []
        for effect in advice.effects:
            spans += [Span(", " if spans else "", "dim"), Span(effect.text, self.toned(_TONES[effect.gain]))]
        return spans


def _rows(spans: list[Span], width: int) -> list[list[Span]]:
    """Return spans in rows that have room for them."""
    rows: list[list[Span]] = [[]]
    for span in spans:
        used = cell_len("".join(other.text for other in rows[-1]))
        if rows[-1] and used + cell_len(span.text) > width - _INDENT and span.text.strip(", "):
            rows.append([])
        rows[-1].append(span)
    return rows


ADVISE_AFTER_SECONDS = 0.3  # Advice takes a dozen estimates: it waits until the keys rest


class Advising:
    """Has the plan advised on, and takes advice."""

    def __init__(self, session: Session, screen: DOMNode, panel: AdviceList) -> None:
        self._session = session
        self._store = session.store
        self._screen = screen
        self._panel = panel
        self._requested: tuple[int, str] | None = None
        self.commands: Commands = {"advice.apply": self.take, "advice.take": self.take}
        session.plan_changes.subscribe(screen, lambda _: self._session.cancel(screen, "advise"))
        session.answers.subscribe(screen, lambda _: self._follow())

    def _show(self, wanted: tuple[int, str], advice: tuple[Advice, ...]) -> None:
        """Show advice on a plan of the store and a mode of it, the best first."""
        self._store.advice, self._store.advised = advice, wanted
        self._session.answers.publish(None)

    def take(self) -> None:
        """Change the plan as the advice says, in one edit."""
        if not self._store.is_advised:
            self._session.say("no advice on this plan yet")
            return
        advice = self._panel.chosen
        if advice is None:
            self._session.say("no improvement found")
            return
        refusal = self._session.apply(advice.change)
        self._session.guide.take(ADVICE_APPLIED)
        self._session.say(refusal or f"{advice.title}: {{edit.undo}} undoes it", "bad" if refusal else "good")

    def _follow(self) -> None:
        """Ask anew where the numbers are of another plan or another mode; show what is known."""
        store = self._store
        column, document = store.mode_column, store.document
        if column is None or document is None:
            return
        is_known = store.is_advised
        is_first = not store.advice and not is_known
        self._panel.show_advice(
            None if is_first else store.advice, stale=not is_known, urgent=column.verdict.holds is False
        )
        self._panel.subject = f"on {column.mode}" if column is not store.column else ""
        wanted = (store.generation, column.mode)
        if store.is_stale or self._requested == wanted:
            return
        self._requested = wanted

        def work(request: Request[tuple[Advice, ...]]) -> tuple[Advice, ...] | None:
            if request.cancelled.wait(ADVISE_AFTER_SECONDS):
                return None
            return request.while_wanted(lambda: document.advice(column.mode))

        self._session.ask(self._screen, "advise", work, partial(self._show, wanted))
