"""Panel 4: where the number under the cursor comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.terminal.text import Line, Span, fit, left, line, spread, wrap
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.engine.api import ExplanationText, FormulaInput


class Why(Panel):
    """Formula, the numbers put into it, sources, assumptions and the strongest lever."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("why")
    NUMBER = 4
    TITLE = "Why"
    KEYS = "enter all of it"

    def __init__(self) -> None:
        super().__init__()
        self.explanation: ExplanationText | None = None

    def show_explanation(self, explanation: ExplanationText | None) -> None:
        """Explain another number."""
        if explanation != self.explanation:
            self.explanation = explanation
            self.repaint()

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the explanation out."""
        if self.explanation is None:
            return [line(Span("Choose a row of panel 3 to see where its number comes from.", "dim"))], None
        return explain_lines(self.explanation, width), None

    def summary(self) -> Line:
        """Return the formula."""
        if self.explanation is None:
            return line()
        return line(Span(f"{self.explanation.title} ", "label"), Span(self.explanation.formula, "value"))


def explain_lines(explanation: ExplanationText, width: int) -> list[Line]:
    """Return an explanation as lines, the most useful first."""
    head = line(Span(explanation.title, "heading"))
    result = " ".join(part for part in (explanation.result, explanation.interval) if part)
    lines = [spread(head, line(Span(result, "best")), width)]
    if result and result not in lines[0].plain:
        lines = [fit(head, width), line(Span(result, "best"))]
    lines += [line(Span(text, "value")) for text in wrap(explanation.formula, width, "  ")]
    lines += _input_lines(explanation.inputs, width)
    for remark in explanation.remarks:
        lines += _labelled("note", remark, width, "value")
    if explanation.lever:
        lines += _labelled("lever", explanation.lever, width, "accent")
    for step in explanation.steps:
        lines += _labelled("with", f"{step.formula}  ({step.result})", width, "value")
        lines += _input_lines(step.inputs, width)
    for assumption in explanation.assumptions:
        lines += _labelled("assumed", assumption, width, "warn")
    for source in explanation.sources:
        lines += _labelled("source", source, width, "dim")
    return lines


def _input_lines(inputs: tuple[FormulaInput, ...], width: int) -> list[Line]:
    names = max((cell_len(entry.name) for entry in inputs), default=0)
    texts = max((cell_len(entry.text) for entry in inputs), default=0)
    names = min(names, width // 2)
    lines = []
    for entry in inputs:
        room = width - names - texts - 6
        source = Span(left(entry.source, room).rstrip(), "dim") if room > 3 else Span("")
        lines.append(
            line(
                "  ",
                Span(left(entry.name, names), "label"),
                "  ",
                Span(f"{entry.text:<{texts}}", "value"),
                "  ",
                source,
            )
        )
    return lines


def _labelled(label: str, text: str, width: int, role: str) -> list[Line]:
    first, *rest = wrap(text, width - 9) or [""]
    lines = [line(Span(f"{label:<8} ", "label"), Span(first, role))]
    return lines + [line(" " * 9, Span(more, role)) for more in rest]
