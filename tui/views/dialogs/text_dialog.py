"""Texts over the screen; one of them is the help, made from the list of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.tui.actions import ACTIONS, QUERY_VIEWS, Action, dialog_bindings, key_names, with_keys
from capacity_tui.tui.text import Line, Span, left, line, plain_text, to_ascii, wrap
from capacity_tui.tui.widgets.lines import ClosesOnce, DrawnLines


class TextLines(DrawnLines):
    """A text that is built anew for each width."""

    def __init__(self, build: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._build = build

    def draw(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - the rest is scrolled to
        return self._build(width)

    def scroll_pages(self, direction: int) -> None:
        self.scroll_lines(direction * max(self.size.height - 1, 1))

    def scroll_to_end(self, direction: int) -> None:
        self.scroll_lines(direction * len(self.lines))

    def as_text(self) -> str:
        return plain_text(self.lines)


class ScrollsText:
    """A screen over which the mouse scrolls its text, wherever it is."""

    text: TextLines  # what is scrolled

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.text.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.text.scroll_lines(-3)


class TextDialog(ScrollsText, ModalScreen[None], ClosesOnce[None]):
    """Shows lines that are laid out for the width there is."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("text")

    def __init__(
        self,
        title: str,
        build: Callable[[int], list[Line]],
        copy: Callable[[str], None],
        export: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._copy = copy
        self._export = export
        self.text = TextLines(build)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as frame:
            ascii_only = self.app.has_class("-ascii")
            frame.border_title = Content(to_ascii(self._title) if ascii_only else self._title)
            export = ", E pictures" if self._export else ""
            frame.border_subtitle = Content(f"j k scroll, y copy{export}, esc close")
            yield self.text

    def action_move(self, offset: int) -> None:
        self.text.scroll_lines(offset)

    def action_scroll_page(self, direction: int) -> None:
        self.text.scroll_pages(direction)

    def action_export(self) -> None:
        if self._export is not None:
            self._export()

    def action_copy(self) -> None:
        self._copy(self.text.as_text())
        self.dismiss()


_ABOUT = {
    "hardware": "The machine the plan is for. Each fact says whether it was detected, measured, taken from the "
    "catalogue or assumed.",
    "config": "The plan. Each of the three modes chooses its own value for a field that says auto.",
    "plans": "The same plan in three modes: conservative keeps a reserve, extreme goes to the limit, balanced lies "
    "between. The best value of a row is bold. Percentages are relative to the baseline; those with an "
    "arrow, to the numbers before the last edit, until the next edit, x or esc.",
    "why": "Where the number under the cursor of panel 3 comes from: formula, inputs, sources and what would "
    "change it most.",
    "advice": "What would improve the plan, best first, with all that it does to memory, time and cost. If nothing "
    "fits, these are the ways to make it fit. Applying one is an edit like any other: {edit.undo} undoes it.",
    "live": "What this machine is doing now.",
    "question": "What to search for: the best plans for the goal within the limits, over all that is left open. "
    "Change a line with enter or {question.more} and {question.less}, reset it with {question.clear}; the rows follow "
    "at once.",
    "found": "The plans that answer the question, best first. A dot marks the Pareto front of the two figures in the "
    "chart. Applying one is an edit like any other: {edit.undo} undoes it.",
    "offers": "The plan on every instance one can rent, the current one first. Saving is how much less the same work "
    "costs in a month; a star marks prices older than 90 days.",
    "offer": "The offer under the cursor in full: its cost, its migration and its risks. Enter opens a figure and "
    "shows where it comes from; {why.back} goes back.",
    "devices": "The plan on more and fewer devices, with the knee of its efficiency. Enter applies a row to the plan "
    "as one edit; {scale.growth} switches between one batch for all devices and one for each.",
    "storage": "What the plan stores on disk and reads back: its data, its checkpoints, and how long a step waits "
    "for either.",
    "corpus": "A corpus cut into patterns of several levels. A field that says auto follows the plan, or the usual "
    "value; {edit.undo} undoes the last change.",
    "levels": "What the patterns of each level take in a store that keeps each of them once. The charts show how "
    "that grows with the corpus, and how often patterns of the level under the cursor occur.",
    "machine": "All that is known about this machine and how it is known, its score, and what suits it. Measuring "
    "takes some ten seconds; results are saved, and estimates use them from then on.",
}

_KEYS = 18


def help_lines(
    panel: str, keymap: Mapping[str, str], settings: str, width: int, about: tuple[str, str] = ("", "")
) -> list[Line]:

    def wrapped(text: str) -> list[Line]:
        return [line(Span(piece, "value")) for piece in wrap(with_keys(text, keymap), width)]

    what, meaning = about
    lines = [line(Span(what, "heading")), *wrapped(meaning), line()] if meaning else []
    lines += [line(Span(panel.capitalize(), "heading")), *wrapped(_ABOUT.get(panel, ""))]
    groups = sorted(ACTIONS, key=lambda action: _order(action.group))
    for group, actions in groupby(groups, key=lambda action: action.group):
        lines += [line(), line(Span(group, "heading"))]
        lines += [_key_line(action, keymap, width) for action in actions]
    lines += [line(), line(Span("Other keys", "heading"))]
    other = f"Write the name on the right and the keys below `keys:` in {settings}, such as `edit.undo: U`."
    return lines + wrapped(other)


def _order(group: str) -> int:
    return [action.group for action in ACTIONS].index(group)


def _key_line(action: Action, keymap: Mapping[str, str], width: int) -> Line:
    keys = "  ".join(key_names(action, keymap))
    places = QUERY_VIEWS if action.scope == "asking" else (action.scope,)
    words = " and ".join(place.capitalize() for place in places)
    where = "" if action.scope in {"app", "plan", "panel"} else f" (in {words})"
    title = left(action.title + where, max(width - _KEYS - 20, 0))
    return line(Span(left(keys, _KEYS), "key"), Span(title, "value"), Span(f" {action.id}", "dim"))
