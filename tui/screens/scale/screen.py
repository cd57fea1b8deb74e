"""The view of scaling: the plan on more and fewer devices, with the knee and the price of going faster."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.messages import Failed, PlanPinned, PlanScaled
from capacity_tui.tui.requests import Request
from capacity_tui.tui.scaled import GROWTHS, STRONG
from capacity_tui.tui.screens.scale.pictures import ScaledPictures
from capacity_tui.tui.screens.scale.remarks import Remarks
from capacity_tui.tui.screens.scale.table import ScaledTable
from capacity_tui.tui.screens.taking import Taking
from capacity_tui.tui.screens.view_screen import ViewScreen
from capacity_tui.tui.session import Session
from capacity_tui.tui.view import Document
from capacity_tui.tui.widgets.panel import Panel

_SUBJECT = "scale"


class ScaleScreen(ViewScreen):
    """Shows what more devices bring; a row is taken over into the plan, or pinned beside it.

    Args:
        session: what every screen works with.
    """

    VIEW = "scale"
    AUTO_FOCUS: ClassVar[str] = "#scale"
    BINDINGS: ClassVar[list[BindingType]] = bindings("scale")
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-short"), (23, "-middle"), (32, "-tall")]  # noqa: RUF012

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._table, self._pictures, self._remarks = ScaledTable(), ScaledPictures(session.glyphs), Remarks()
        self._growth = STRONG
        self._asked: tuple[Document, str, str] | None = None
        taking = Taking(session, self, self._table, lambda _: None)
        self._taking = taking
        self.commands = {
            **self.commands,
            "scale.take": taking.take,
            "scale.pin": taking.pin,
            "scale.growth": self._change_growth,
            "scale.pictures": lambda: self.toggle_class("-pictures"),
            "scale.copy": self._copy,
        }

    def body(self) -> ComposeResult:
        """Put the rows above what there is to say of them, and the pictures below."""
        yield self._table
        yield self._remarks
        yield self._pictures

    def on_mount(self) -> None:
        """Follow the plan and its numbers."""
        self._table.add_class("-current")
        self.session.plan_changes.subscribe(self, lambda _: self._table.show_old())
        self.session.answers.subscribe(self, lambda _: self._follow())

    def on_screen_resume(self) -> None:
        """Show the plan as it is now."""
        self._follow()

    # What the threads report

    @on(PlanScaled)
    def show_plan(self, event: PlanScaled) -> None:
        """Show what is known by now."""
        self._table.message = "this runs on one device, and is not divided"
        self._table.show_plan(event.plan)
        self._remarks.show_remarks(event.plan.remarks if event.plan.is_complete else ("trying more devices…",))

    @on(PlanPinned)
    def take_pinned(self, event: PlanPinned) -> None:
        """Take up what was pinned."""
        self._taking.take_pinned(event)

    @on(Failed)
    def show_failure(self, event: Failed) -> None:
        """Ask again when there are new numbers; the program says what went wrong."""
        self._asked = None
        if event.request is not None and event.request.subject == _SUBJECT:
            self._remarks.show_remarks((event.in_short,))

    @on(Panel.CursorMoved)
    def show_row(self) -> None:
        """Mark the row under the cursor in the pictures."""
        row = self._table.row
        self._pictures.show_plan(self._table.plan, row.devices if row else None)

    # Commands

    def about(self) -> tuple[str, str]:
        """Return what is under the cursor and what it means."""
        row = self._table.row
        if row is None:
            return "", ""
        return (
            f"{row.cells[0]} devices",
            "Speed-up is throughput over that of one device where devices are used best, efficiency that over the "
            "devices. The knee is where their product is largest: beyond it each further device loses more than it "
            "brings. $/h saved is what each hour costs that the job ends earlier than with the row above.",
        )

    def back(self) -> None:
        """Show rows again where the pictures stand alone; else go back to the plan."""
        if self.has_class("-pictures"):
            self.remove_class("-pictures")
        else:
            super().back()

    def _change_growth(self) -> None:
        """Keep the batch of each device in place of that of all, or the other way round."""
        kinds = tuple(GROWTHS)
        self._growth = kinds[(kinds.index(self._growth) + 1) % len(kinds)]
        self._table.show_old()
        self._follow()

    def _copy(self) -> None:
        lines = (*self._table.lines, *self._remarks.lines)
        self.session.copy("\n".join(shown.plain.rstrip() for shown in lines) + "\n")

    def _follow(self) -> None:
        """Ask about the plan that has numbers by now, unless that was done."""
        store = self.session.store
        document, column = store.document, store.mode_column
        if not self.is_current or document is None or column is None or store.is_stale:
            return
        asked = (document, column.mode, self._growth)
        if asked == self._asked:
            return
        self._asked = asked
        self._table.show_old()

        def work(request: Request) -> None:
            for plan in document.scaled(*asked[1:]):
                if request.cancelled.is_set():
                    return
                request.answer(PlanScaled(plan))

        self.session.ask(self, _SUBJECT, work)
