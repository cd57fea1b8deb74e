"""The view that searches: a question about the plan, the rows that answer it, and a picture of what they weigh."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.messages import Asked, Failed, PlanPinned, Searched
from capacity_tui.tui.screens.find.details import Details
from capacity_tui.tui.screens.find.found_table import FoundTable
from capacity_tui.tui.screens.find.front import Front
from capacity_tui.tui.screens.find.progress import Progress
from capacity_tui.tui.screens.find.question_edits import QuestionEdits
from capacity_tui.tui.screens.find.question_form import QuestionForm
from capacity_tui.tui.screens.find.rules import nothing_found, rule_lines
from capacity_tui.tui.screens.find.searching import Searching
from capacity_tui.tui.screens.taking import Taking
from capacity_tui.tui.screens.view_screen import ViewScreen
from capacity_tui.tui.session import Session
from capacity_tui.tui.terminal.text import Line
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.prompt import Accept, Prompt


class FindScreen(ViewScreen):
    """Finds plans around the current one.

    Args:
        session: what every screen works with.
    """

    VIEW = "find"
    AUTO_FOCUS: ClassVar[str] = "#found"
    BINDINGS: ClassVar[list[BindingType]] = bindings("find")
    HORIZONTAL_BREAKPOINTS = [(0, "-slender"), (116, "-broad")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-short"), (22, "-middle"), (32, "-tall")]  # noqa: RUF012

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._form, self._table, self._front = QuestionForm(), FoundTable(), Front(session.glyphs)
        self._progress, self._details, self._prompt = Progress(), Details(), Prompt()
        self._current: Panel = self._table
        self._searching = Searching(session, self)
        self._taking = Taking(session, self, self._table, self._searching.take_up)
        edits = QuestionEdits(session, self._form, self._edit, self._ask)
        self.commands = {
            **self.commands,
            **edits.commands,
            "found.take": self._taking.take,
            "found.pin": self._taking.pin,
            "found.sort": self._sort,
            "found.reverse": self._reverse,
            "found.mark": self._table.mark,
            "found.filter": self._filter,
            "found.rules": self._show_rules,
            "found.front": self._show_front,
            "question.copy": self._copy_command,
            "found.copy": self._copy_rows,
            **{f"panel.{panel.id}": partial(self._go_to, panel) for panel in (self._form, self._table)},
            "found.beside": self._go_beside,
            "question.right": partial(self._form.move, 1),
            "question.left": partial(self._form.move, -1),
        }

    def body(self) -> ComposeResult:
        """Put the question above the rows, and what there is to say of one of them below."""
        yield self._form
        yield self._progress
        with Horizontal(id="answers"):
            yield self._table
            yield self._front
        yield self._details
        yield self._prompt

    def on_mount(self) -> None:
        """Follow the plan."""
        self.session.plan_changes.subscribe(self, lambda _: self._follow())
        self._go_to(self._table)

    def on_screen_resume(self) -> None:
        """Search around the plan as it is now, unless that is done."""
        self._follow()

    # What the threads report

    @on(Asked)
    def show_question(self, event: Asked) -> None:
        """Show what is asked."""
        self._searching.take_asked(event)
        self._show_fields()

    @on(Searched)
    def show_found(self, event: Searched) -> None:
        """Show the best so far."""
        if event.is_last:
            self._searching.ended()
        self._table.show_found(event.found, nothing_found(event.found) if event.is_last else "searching…")
        self._show_state()

    @on(PlanPinned)
    def take_pinned(self, event: PlanPinned) -> None:
        """Take up what was pinned."""
        self._taking.take_pinned(event)

    @on(Failed)
    def show_failure(self, event: Failed) -> None:
        """Say why there are no rows; the program says the rest."""
        if event.request is not None and event.request.subject == "search":
            event.stop()
            self.session.last_failure = event
            self._searching.ended()
            self._table.show_message(event.in_short)
            self._show_state()

    # What the panels report

    @on(Panel.CursorMoved)
    def show_row(self) -> None:
        """Say more of what is under the cursor."""
        self._show_state()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Mark the panel that has the focus."""
        if isinstance(event.widget, Panel):
            self._mark_current(event.widget)

    def on_prompt_closed(self) -> None:
        """Go back to the panel that had the focus."""
        self._current.focus()

    # Commands

    def back(self) -> None:
        """Stop searching; show all rows again; go back to the plan."""
        if self._searching.stop():
            self._show_state()
        elif self.has_class("-front"):
            self._lay_out(front=False, rows=False)
        elif self._table.filter:
            self._table.narrow("")
            self._show_state()
        else:
            super().back()

    def about(self) -> tuple[str, str]:
        """Return what is under the cursor and what it means."""
        if self._current is self._form:
            field = self._form.field
            return (field.label, field.help) if field else ("", "")
        row = self._table.row
        return ("The row under the cursor", " ".join(row.about)) if row else ("", "")

    def _edit(self, key: str, text: str) -> None:
        self._searching.edit(key, text)
        self._table.show_old()
        self._show_fields()

    def _ask(self, question: str, value: str, accept: Accept) -> None:
        self._prompt.ask(question, value, accept)

    def _follow(self) -> None:
        """Ask anew where the plan is another one and this view is shown; elsewhere only stop."""
        if not self.is_current:
            if self._searching.is_running and not self._searching.is_current:
                self._searching.give_up()
        elif self._searching.follow():
            self._table.show_old()
            self._show_state()

    def _sort(self) -> None:
        self._table.sort()
        self._show_state()

    def _reverse(self) -> None:
        self._table.reverse()
        self._show_state()

    def _filter(self) -> None:
        """Show the rows that have what is typed, while it is typed."""
        before = self._table.filter

        def follow(text: str | None) -> str:
            self._table.narrow(before if text is None else text)
            self._show_state()
            return f"{len(self._table.shown)} rows: words such as h100, tight or front"

        def accept(text: str) -> str:
            follow(text)
            return ""

        self._prompt.ask("Rows with", before, accept, follow)

    def _show_rules(self) -> None:
        """Show what rules excluded."""
        from capacity_tui.tui.screens.dialogs.text_dialog import TextDialog

        found = self._table.found

        def build(width: int) -> list[Line]:
            return rule_lines(found, width)

        self.app.push_screen(TextDialog("What was excluded, and by what", build, self.session.copy))

    def _show_front(self) -> None:
        """Show the picture alone, then the rows alone, then both where there is room."""
        is_alone, has_rows = self.has_class("-front"), self.has_class("-rows")
        self._lay_out(front=not is_alone and not has_rows, rows=is_alone and self.has_class("-broad"))

    def _lay_out(self, *, front: bool, rows: bool) -> None:
        self.set_class(front, "-front")
        self.set_class(rows, "-rows")
        # What was out of sight could not keep the focus.
        self.call_after_refresh(self._current.focus)

    def _copy_command(self) -> None:
        if self._searching.question is not None:
            self.session.copy(self._searching.question.command() + "\n", "command.txt")

    def _copy_rows(self) -> None:
        self.session.copy("\n".join(row.plain.rstrip() for row in self._table.lines) + "\n")

    # Panels

    def _go_beside(self) -> None:
        self._go_to(self._table if self._current is self._form else self._form)

    def _go_to(self, panel: Panel) -> None:
        self._mark_current(panel)
        panel.focus()

    def _mark_current(self, panel: Panel) -> None:
        self._current = panel
        self.footer.name_keys_of(panel.TITLE.lower())
        for other in (self._form, self._table):
            other.set_class(other is panel, "-current")
            other.repaint()
        self._show_state()

    def _show_fields(self) -> None:
        question = self._searching.question
        if question is not None:
            self._form.show_fields(question.fields(), frozenset(question.said))
        self._show_state()

    def _show_state(self) -> None:
        """Show how far the search is, and what there is to say of what is under the cursor."""
        self._progress.show_state(self._table, self._searching)
        found, row = self._table.found, self._table.row
        here = self._table.shown[self._table.cursor] if row is not None else None
        self._front.show_found(found, self._table.shown, here)
        if self._current is self._form:
            self._details.show_field(self._form.field)
        else:
            self._details.show_row(row, found)
