"""What views have in common that ask a question about the plan: editing its parts, and the rows that answer it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands, bindings
from capacity_tui.tui.requests import Fault
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import Choice, Field, Kind, Results
from capacity_tui.tui.text import Line, Span, clip, line, plain_text
from capacity_tui.tui.views.dialogs.picker import Picker, Typed
from capacity_tui.tui.views.query_view.results import ResultTable
from capacity_tui.tui.views.query_view.search import Begin, Details, Progress, Searching, SearchState
from capacity_tui.tui.views.view_screen import PanelScreen, RowActions, size_classes
from capacity_tui.tui.widgets.lines import Lines
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.prompt import Accept, Ask, Prompt

_GAP = 2
_MOST_TEXT = 40
_ROOM_FOR_ALL = 96
_NOTHING = "–"


class QuestionForm(Panel):
    """Goal, limits and what is free; the part under the cursor can be said otherwise."""

    NUMBER = 1
    TITLE = "Question"
    KEYS = "{question.type:last} edit · {question.more} {question.less} step · {found.beside} rows"

    def __init__(self) -> None:
        super().__init__()
        self._fields: tuple[Field, ...] = ()
        self._given: frozenset[str] = frozenset()
        self._places: dict[int, tuple[int, int]] = {}
        self.commands = {
            **self.commands,
            "cursor.up": partial(self._move_line, -1),
            "cursor.down": partial(self._move_line, 1),
        }

    @property
    def field(self) -> Field | None:
        return self._fields[self.cursor] if self.cursor < len(self._fields) else None

    def show_fields(self, fields: tuple[Field, ...], given: frozenset[str]) -> None:
        """Show a question, and which of its fields the user said."""
        key = self.field.key if self.field else ""
        self._fields, self._given = fields, given
        self.cursor = next((index for index, field in enumerate(fields) if field.key == key), 0)
        self.repaint()

    def item_count(self) -> int:
        return len(self._fields)

    def item_at(self, index: int) -> int | None:
        return next((item for item, (row, _) in self._places.items() if row == index), None)

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the parts out one after the other, and take as many lines as they need."""
        if not self._fields:
            self._take_height(1)
            return [line(Span(" reading the plan…", "dim"))], None
        lines: list[list[Span]] = [[]]
        used, self._places = 0, {}
        # On a small terminal, what says nothing is shown while one is at it.
        is_short = width < _ROOM_FOR_ALL and not self.is_current
        for index, field in enumerate(self._fields):
            if is_short and not field.text:
                continue
            text = clip(field.text or _NOTHING, min(_MOST_TEXT, max(width - cell_len(field.label) - 4, 4)))
            size = cell_len(field.label) + cell_len(text) + 2
            if used and used + size > width:
                lines.append([])
                used = 0
            at_cursor = index == self.cursor and self.is_current
            self._places[index] = len(lines) - 1, used
            role = "best" if field.key in self._given else "value" if field.text else "dim"
            lines[-1] += [
                Span("▌" if at_cursor else " ", "accent"),
                Span(f"{field.label} ", "key" if at_cursor else "label"),
                Span(text, "key" if at_cursor else role),
                Span(" " * _GAP),
            ]
            used += size + _GAP
        self._take_height(len(lines))
        row = self._places.get(self.cursor, (0, 0))[0]
        return [Line(tuple(spans)) for spans in lines], range(row, row + 1)

    def _take_height(self, lines: int) -> None:
        frame = self.outer_size.height - self.size.height
        wanted = lines + max(frame, 0)
        if self.styles.height is None or self.styles.height.value != wanted:
            self.styles.height = wanted

    def _move_line(self, offset: int) -> None:
        row, column = self._places.get(self.cursor, (0, 0))
        candidates = [(abs(x - column), index) for index, (y, x) in self._places.items() if y == row + offset]
        if candidates:
            self.move_to(min(candidates)[1])


class QuestionEdits:
    """Changes the part of the question under the cursor of its form; an edit raises where it makes no sense."""

    def __init__(self, session: Session, form: QuestionForm, edit: Callable[[str, str], None], ask: Ask) -> None:
        self._session = session
        self._form = form
        self._edit = edit
        self._ask = ask
        self.commands: Commands = {
            "question.more": partial(self.step, 1),
            "question.less": partial(self.step, -1),
            "question.type": self.type_value,
            "question.clear": self.clear,
        }

    def step(self, direction: int) -> None:
        """Say the next of the choices, or the one before."""
        field = self._form.field
        if field is None:
            return
        if not field.choices:
            self.type_value()
            return
        here = field.choices.index(field.text) if field.text in field.choices else -1
        after = max(0, min(here + direction, len(field.choices) - 1))
        self._tell(self.change(field.key, field.choices[after]))

    def type_value(self) -> None:
        field = self._form.field
        if field is None:
            return
        if field.catalogue or field.kind is Kind.CHOICE:
            self._pick(field)
            return
        hint = f" ({field.unit})" if field.unit else ""
        self._ask(f"{field.label}{hint}", field.text, partial(self.change, field.key))

    def clear(self) -> None:
        if self._form.field is not None:
            self._tell(self.change(self._form.field.key, ""))

    def change(self, key: str, text: str) -> str:
        """Say a part otherwise; return why that was refused, or an empty text."""
        try:
            self._edit(key, text)
        except CapacityError as error:
            return error.in_place()
        return ""

    def _tell(self, refusal: str) -> None:
        if refusal:
            self._session.say(refusal, "bad")

    def _pick(self, field: Field) -> None:
        def picked(choice: str | None) -> None:
            if choice is not None:
                self._tell(self.change(field.key, choice))

        def choices() -> tuple[Choice, ...]:
            offered = tuple(Choice(name, name, field.words.get(name, "")) for name in field.choices)
            return offered + (self._session.engine.catalogue(field.catalogue) if field.catalogue else ())

        typed = None if field.kind is Kind.CHOICE else Typed(field.unit, bool)
        self._session.app.push_screen(Picker(self._session, field.label, choices, field.text, typed), picked)


ASIDE, ROWS = "-aside", "-rows"
"""Classes of the screen while what stands beside the rows is shown alone, and while the rows are."""


class QueryScreen(PanelScreen):
    """A question above the rows that answer it; a row is taken over into the plan, or pinned beside it."""

    AUTO_FOCUS: ClassVar[str] = "ResultTable"
    BINDINGS: ClassVar[list[BindingType]] = bindings("asking")
    HORIZONTAL_BREAKPOINTS = size_classes(slender=0, broad=116)
    VERTICAL_BREAKPOINTS = size_classes(low=0, short=16, middle=22, tall=32)

    def __init__(self, session: Session, table: ResultTable, aside: Lines, begin: Begin) -> None:
        self.table, self.aside, self.form = table, aside, QuestionForm()
        super().__init__(session, (table, self.form, *((aside,) if isinstance(aside, Panel) else ())))
        self._progress, self._details, self.prompt = Progress(), Details(), Prompt()
        self._searching = Searching(session, self, begin, self._show_search, self._show_failure)
        self._row_actions = RowActions(session, self, table, self._searching.take_up)
        edits = QuestionEdits(session, self.form, self._edit, self.ask)
        self.commands = {
            **self.commands,
            **edits.commands,
            "found.take": self._row_actions.take,
            "found.pin": self._row_actions.pin,
            "found.sort": self._sort,
            "found.reverse": self._reverse,
            "found.mark": table.mark,
            "found.filter": self._filter,
            "found.front": self._show_aside,
            "found.copy": lambda: session.copy(plain_text(table.lines)),
            "found.beside": self._go_across,
            "panel.question": partial(self.go_to, self.form),
            "panel.found": partial(self.go_to, table),
            "question.copy": self._copy_command,
            "question.right": partial(self.form.move, 1),
            "question.left": partial(self.form.move, -1),
        }

    @property
    def has_room_aside(self) -> bool:
        """Whether there is room for both, the rows and what stands beside them."""
        return self.has_class("-broad")

    def body(self) -> ComposeResult:
        """Put the question above the rows, and what there is to say of one of them below."""
        yield self.form
        yield from self.conclusion()
        yield self._progress
        with Horizontal(id="answers"):
            yield self.table
            yield self.aside
        yield self._details
        yield self.prompt

    def conclusion(self) -> ComposeResult:
        """Yield what stands between the question and the rows."""
        yield from ()

    def why_nothing(self, results: Results) -> str:
        """Return why there are no rows."""
        raise NotImplementedError

    def show_row(self) -> None:
        raise NotImplementedError

    def on_mount(self) -> None:
        self.session.plan_changes.subscribe(self, lambda _: self.follow_plan())
        self.go_to(self.table)

    def on_screen_resume(self) -> None:
        """Ask about the plan as it is now, unless that is done."""
        self.follow_plan()

    # What the threads report

    def _show_search(self, so_far: SearchState) -> None:
        if so_far.rows is None:
            self._show_fields()
            return
        message = self.why_nothing(so_far.rows) if so_far.is_last else "searching…"
        self.table.show_results(so_far.rows, message)
        self.show_state()

    def _show_failure(self, fault: Fault) -> None:
        self.session.last_failure = fault
        self.table.show_message(fault.in_short)
        self.show_state()

    # What the panels report

    @on(Panel.CursorMoved)
    def show_state(self) -> None:
        """Show how far the search is, and what there is to say of what is under the cursor."""
        self._progress.show_state(self.table, self._searching)
        self.show_row()
        if self.current is self.form:
            self._details.show_field(self.form.field)
        else:
            self._details.show_row(self.table.row, self.table.results)

    # Commands

    def back(self) -> None:
        """Stop searching; show all rows again; go back to the plan."""
        if self._searching.can_stop:
            self._searching.stop()
            self.show_state()
            self.session.say(f"the search stops; {{view.back}} {self.back_does}")
        elif self.has_class(ASIDE):
            self.lay_out(aside=False, rows=False)
        elif self.table.filter:
            self.table.narrow("")
            self.show_state()
        else:
            super().back()

    @property
    def back_does(self) -> str:
        if self._searching.can_stop:
            return "stops the search"
        if self.has_class(ASIDE):
            return "shows the rows"
        return "shows all rows" if self.table.filter else super().back_does

    def about(self) -> tuple[str, str]:
        if self.current is self.form:
            field = self.form.field
            return (field.label, field.help) if field else ("", "")
        row = self.table.row
        return ("The row under the cursor", " ".join(row.about)) if row else ("", "")

    def go_to(self, panel: Panel) -> None:
        """Give the keys to a panel, and show the rows again where they are gone to."""
        super().go_to(panel)
        if panel is self.table and self.has_class(ASIDE):
            self.lay_out(aside=False, rows=False)

    def lay_out(self, *, aside: bool, rows: bool) -> None:
        """Show what stands beside the rows alone, or the rows alone, or what there is room for."""
        self.set_class(aside, ASIDE)
        self.set_class(rows, ROWS)
        # What was out of sight could not keep the focus.
        self.call_after_refresh(self.current.focus)

    def _edit(self, key: str, text: str) -> None:
        self._searching.edit(key, text)
        self.table.show_old()
        self._show_fields()

    def ask(self, question: str, value: str, accept: Accept) -> None:
        self.prompt.ask(question, value, accept)

    def forget_answers(self) -> None:
        """Answer the question anew when it is next looked at."""
        self._searching.forget()

    def follow_plan(self) -> None:
        """Ask anew where the plan is another one and this view is shown; elsewhere only stop."""
        if not self.is_current:
            if self._searching.is_running and not self._searching.is_current:
                self._searching.give_up()
        elif self._searching.follow():
            self.table.show_old()
            self.show_state()

    def _sort(self) -> None:
        self.table.sort()
        self.show_state()

    def _reverse(self) -> None:
        self.table.reverse()
        self.show_state()

    def _filter(self) -> None:
        before = self.table.filter

        def follow(text: str | None) -> str:
            self.table.narrow(before if text is None else text)
            self.show_state()
            return f"{len(self.table.shown)} rows: words such as h100, tight or front; limits such as $/h<20"

        def accept(text: str) -> str:
            follow(text)
            return ""

        self.prompt.ask("Filter rows by", before, accept, follow)

    def _show_aside(self) -> None:
        """Show what stands beside the rows alone, then the rows alone, then both where there is room."""
        is_alone, has_rows = self.has_class(ASIDE), self.has_class(ROWS)
        self.lay_out(aside=not is_alone and not has_rows, rows=is_alone and self.has_room_aside)

    def _copy_command(self) -> None:
        if self._searching.question is not None:
            self.session.copy(self._searching.question.command() + "\n", "command.txt")

    def _go_across(self) -> None:
        self.go_to(self.form if self.current is self.table else self.table)

    def mark_current(self, panel: Panel) -> None:
        super().mark_current(panel)
        self.show_state()

    def _show_fields(self) -> None:
        question = self._searching.question
        if question is not None:
            self.form.show_fields(question.fields(), frozenset(question.given))
        self.show_state()
