"""The plan screen: five panels over one plan, and what their keys do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical

from capacity_tui.tui.requests import Fault
from capacity_tui.tui.session import Session
from capacity_tui.tui.views.plan.comparison import ComparisonTable
from capacity_tui.tui.views.plan.field_list import FieldList
from capacity_tui.tui.views.plan.hardware import Hardware, Live, Sensors
from capacity_tui.tui.views.plan.why import AdviceList, Advising, Why
from capacity_tui.tui.views.view_screen import PanelScreen, size_classes
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.tui.views.plan.estimates import Estimates, Sweeping
    from capacity_tui.tui.widgets.prompt import Accept, Follow, Prompt


class PlanScreen(PanelScreen):
    """Shows the plan, and hands on what is pressed and what the threads report.

    Args:
        source: the plan to open first, None to propose one.
        accelerator: hardware to plan for instead of the plan's own.
    """

    sensors: Sensors
    _estimates: Estimates
    _prompt: Prompt
    _sweeping: Sweeping
    VIEW = "plan"
    AUTO_FOCUS: ClassVar[str] = "#config"
    HORIZONTAL_BREAKPOINTS = size_classes(tiny_width=0, narrow=60, medium=70, wide=100, broad=116, vast=160)
    VERTICAL_BREAKPOINTS = size_classes(tiny_height=0, short=18, tall=32, high=48)

    def __init__(self, session: Session, source: Path | str | None = None, accelerator: str | None = None) -> None:
        self._source = source
        self._accelerator = accelerator
        self._hardware, self._fields, self._table = Hardware(), FieldList(), ComparisonTable()
        self._why, self._live, self._advice = Why(), Live(session.glyphs), AdviceList()
        super().__init__(session, (self._hardware, self._fields, self._table, self._why, self._live, self._advice))
        self.commands = {}

    def body(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Container(id="left"):
                yield self._hardware
                yield self._fields
            with Container(id="right"):
                yield self._table
                with Vertical(id="beside"):
                    yield self._advice
                    yield self._why
        yield self._live

    def on_mount(self) -> None:
        self.mark_current(self._fields)
        self.call_after_refresh(self._start)

    def action_perform(self, name: str) -> None:
        """Do what an action asks for, also where its key came before the first frame was painted."""
        self._start()
        super().action_perform(name)

    def _start(self) -> None:
        """Put together what the first frame does not wait for."""
        if self.commands:
            return
        from capacity_tui.tui.views.dialogs.map import FieldMap
        from capacity_tui.tui.views.plan.edits import Finding, PlanEdits, PlanPins
        from capacity_tui.tui.views.plan.estimates import Estimates, Following, Sweeping
        from capacity_tui.tui.views.plan.files import Opening, Picturing, PlanFiles
        from capacity_tui.tui.widgets.prompt import Prompt

        session = self.session
        self._prompt = Prompt()
        self._estimates = Estimates(
            session, self, hardware=self._hardware, fields=self._fields, table=self._table, why=self._why
        )
        following = Following(session, self, self._why, self.show_text, self.back, self._estimates.explainer)
        self._sweeping = Sweeping(session, self, self._fields)
        opening = Opening(session, self, self._hardware)
        self.sensors = Sensors(session, self, self._live)
        searched = (self._fields, self._table, self._advice, self._hardware, self._why, self._live)
        self.commands = {
            **PlanEdits(session, self._fields, self._ask).commands,
            **PlanFiles(session, self._table, self._ask, self._estimates.show_fields).commands,
            **FieldMap(session).commands,
            **PlanPins(session, self._ask, partial(self.go_to, self._why)).commands,
            **Finding(session, self._ask, searched, lambda: self.current, self.mark_current).commands,
            **self._estimates.commands,
            **following.commands,
            **Picturing(session, self, self.show_text).commands,
            **Advising(session, self, self._advice).commands,
            **self._sweeping.commands,
            **opening.commands,
            **self.sensors.commands,
            **self.panel_commands,
            "panel.next": partial(self.go_around, 1),
            "panel.previous": partial(self.go_around, -1),
            "panel.right": self._go_right,
            "panel.left": self._go_left,
            "column.right": partial(self._go_to_column, 1),
            "column.left": partial(self._go_to_column, -1),
            "panel.zoom": self._zoom,
            "view.back": self.back,
            "fields.all": self._fields.toggle_all,
        }
        self.mount(self._prompt)
        session.plan_changes.subscribe(self, lambda _: self._estimates.estimate())
        session.wanted.subscribe(self, self._edit_field)
        session.figures.subscribe(self, self._explain_figure)
        session.failures.subscribe(self, self._show_failed_opening)
        opening.begin(self._source, self._accelerator)
        self.watch(self.app, "app_focus", self.sensors.restart, init=False)
        self.sensors.restart()

    def _show_failed_opening(self, fault: Fault) -> None:
        if self.session.store.document is None:
            self.session.show_trouble(fault)

    # What the panels report

    @on(Panel.CursorMoved, "#plans")
    def explain_row(self) -> None:
        self._estimates.explain()

    @on(Panel.CursorMoved, "#config")
    def forget_refusal(self) -> None:
        self._fields.show_error("", "")
        self._sweeping.follow()

    # Panels

    def _ask(self, question: str, value: str, accept: Accept, follow: Follow | None = None) -> None:
        self.session.show_view(self.VIEW)
        self._prompt.ask(question, value, accept, follow)

    def _edit_field(self, key: str) -> None:
        self.session.show_view(self.VIEW)
        self.mark_current(self._fields)
        self._fields.select(key)
        # What lay over the screen gives the focus back first.
        self.call_after_refresh(self.commands["value.type"])

    def _explain_figure(self, key: str) -> None:
        self.session.show_view(self.VIEW)
        self._table.select(key)
        self.go_to(self._why)

    def about(self) -> tuple[str, str]:
        """Return what is under the cursor and what it means; panel 4 explains the row of the table."""
        return (self._table if self.current is self._why else self.current).about()

    def _go_right(self) -> None:
        if self.current is not self._why:
            self.go_to(self._why if self.current is self._table else self._table)

    def _go_left(self) -> None:
        if self.current in (self._table, self._why):
            self.go_to(self._fields if self.current is self._table else self._table)

    def _go_to_column(self, offset: int) -> None:
        """Choose the column beside the chosen one; behind the last one is the next panel."""
        if not self._estimates.has_column(offset):
            (self._go_right if offset > 0 else self._go_left)()
        else:
            self._estimates.choose_column(offset)

    def _zoom(self) -> None:
        self.toggle_class("-zoom")

    def back(self) -> None:
        """Show all panels again; with all in sight count deltas from the baseline again, then hide the first hint."""
        if self.has_class("-zoom"):
            self.remove_class("-zoom")
        elif not self._estimates.forget_edit() and not self.session.guide.is_over:
            self.session.end_guide()

    def mark_current(self, panel: Panel) -> None:
        """Mark a panel and its column, which decides what stays in sight on a small terminal."""
        super().mark_current(panel)
        for column in self.query("#body, #left, #right, #beside"):
            column.set_class(panel in column.query(Panel), "-current")
