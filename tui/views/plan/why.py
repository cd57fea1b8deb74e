"""Panel 4: where the number under the cursor comes from, and each number that was put into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.engine.record import dataclass
from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, fit, fold, left, line, spread, wrap
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity_tui.engine.present import ExplanationText, FormulaInput
    from capacity_tui.engine.present.pictures import Picture

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

    BINDINGS: ClassVar[list[BindingType]] = bindings("why")
    NUMBER = 4
    TITLE = "Why"
    KEYS = "enter follows, backspace goes back"
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
