"""The view of clouds: what the plan is worth on every machine one can rent, and whether moving there pays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from capacity_tui.tui.session import Session
from capacity_tui.tui.text import Line, Span, clip, line, wrap
from capacity_tui.tui.views.dialogs.export import Exporting
from capacity_tui.tui.views.plan.estimates import Following
from capacity_tui.tui.views.plan.why import Why
from capacity_tui.tui.views.query_view.results import ResultTable
from capacity_tui.tui.views.query_view.screen import ROWS, QueryScreen
from capacity_tui.tui.widgets.lines import DrawnLines
from capacity_tui.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from capacity_tui.engine.present import ExplanationText
    from capacity_tui.tui.shown.results import Results


class CloudScreen(QueryScreen):
    """Compares offers of clouds for the current plan."""

    VIEW = "cloud"
    HORIZONTAL_BREAKPOINTS = [(0, "-slender"), (160, "-broad")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-short"), (22, "-middle"), (36, "-tall")]  # noqa: RUF012

    def __init__(self, session: Session) -> None:
        offer = Offer()
        super().__init__(session, Offers(), offer, lambda document, given: document.migration(self._mode, given))
        self._mode = ""
        self._offer, self._conclusion = offer, Conclusion()
        self._shown_key: tuple[tuple[str, str], ...] = ()
        following = Following(session, self, offer, self.show_text, self._leave_offer, self._explainer)
        self.commands = {
            **self.commands,
            **following.commands,
            "panel.offer": partial(self.go_to, offer),
            "found.export": self._export,
            "cloud.recommendations": self._show_conclusion,
        }

    @property
    def has_room_aside(self) -> bool:
        """Whether there is room for the offer beside or below the rows."""
        return self.has_class("-broad") or self.has_class("-tall")

    def follow_plan(self) -> None:
        """Ask anew also where another mode fills the plan."""
        column = self.session.store.mode_column
        if column is not None and column.mode != self._mode:
            self._mode = column.mode
            self.forget_answers()
        super().follow_plan()

    def conclusion(self) -> ComposeResult:
        yield self._conclusion

    def why_nothing(self, results: Results) -> str:
        """Return that no offer holds the job, or why."""
        return next(iter(results.remarks), "no offer") + "; Show all lists what does not fit"

    def show_row(self) -> None:
        """Show all of the offer under the cursor, and the verdict over all of them."""
        results, row = self.table.results, self.table.row
        self._conclusion.show_results(results, is_old=self.table.is_old)
        key = row.key if row is not None else ()
        if key != self._shown_key:
            self.session.cancel(self, "follow")
        if key != self._shown_key or not self._offer.is_followed:
            self._offer.show_explanation(row.page if row is not None else None)
        self._shown_key = key

    def go_to(self, panel: Panel) -> None:
        super().go_to(panel)
        if panel is self._offer and (not self.has_room_aside or self.has_class(ROWS)):
            self.lay_out(aside=True, rows=False)

    def _leave_offer(self) -> None:
        if self.current is self._offer:
            self.go_to(self.table)

    def _explainer(self) -> Callable[[str], ExplanationText] | None:
        """Return what explains figures of the offer that is shown."""
        results, row = self.table.results, self.table.row
        if results is None or row is None or results.source is None or self.table.is_old:
            return None
        return partial(results.source.explained, row)

    def _export(self) -> None:
        """Show the forms that the offers can be written in, then ask where to write one."""
        results = self.table.results
        if results is None or results.source is None or self.table.is_old:
            self.session.say("no offers yet; nothing was written", "warn")
            return
        Exporting(self.session, self.ask).choose("Export the offers", results.source.exports)

    def _show_conclusion(self) -> None:
        """Show verdict and recommendations in full."""
        results = self.table.results
        self.show_text("Whether to move, and where to", lambda width: conclusion_lines(results, width))


class Conclusion(DrawnLines):
    """One line for the verdict, and one for each recommendation where there is room."""

    def __init__(self) -> None:
        super().__init__(id="conclusion")
        self._remarks: tuple[str, ...] = ()
        self._is_old = False

    def show_results(self, results: Results | None, *, is_old: bool) -> None:
        self._remarks, self._is_old = results.remarks if results is not None else (), is_old
        self.repaint()

    def draw(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - what has no room is out of sight
        roles = ("best", *("value" for _ in self._remarks[1:]))
        remarks = zip(self._remarks, roles, strict=False)
        return [line(Span(clip(f" {text}", width), "dim" if self._is_old else role)) for text, role in remarks]


def conclusion_lines(results: Results | None, width: int) -> list[Line]:
    if results is None or not results.remarks:
        return [line(Span("Nothing compared yet.", "value"))]
    verdict, *others = results.remarks
    lines = [line(Span(text, "best")) for text in wrap(verdict, width)]
    for remark in others:
        lines += [line(), *(line(Span(text, "value")) for text in wrap(remark, width))]
    return lines


class Offers(ResultTable):
    """Machines that could be rented for the plan, one a line."""

    TITLE = "Offers"
    SCOPE = "found"


class Offer(Why):
    """Figures, reasons and remedies of one offer; each figure opens into what it comes from."""

    NUMBER = 3
    TITLE = "Offer"
    SCOPE = "why"
    KEYS = "{why.follow} opens a figure, {why.back} goes back"
    NOTHING = "Choose an offer to see its cost, its migration and its risks."

    def __init__(self) -> None:
        super().__init__()
        self.add_class("aside")
