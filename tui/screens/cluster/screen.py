"""The view of a cluster: its nodes, what the plan puts where, and the queue."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical

from capacity_tui.tui.actions import bindings
from capacity_tui.tui.messages import ClusterSeen, Failed, PlanPinned
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.cluster.nodes import Nodes
from capacity_tui.tui.screens.cluster.placement import PlacementLevels
from capacity_tui.tui.screens.cluster.queue import Queue
from capacity_tui.tui.screens.taking import Taking
from capacity_tui.tui.screens.view_screen import ViewScreen
from capacity_tui.tui.session import Session
from capacity_tui.tui.view import Document
from capacity_tui.tui.widgets.panel import Panel

SEEN = "cluster"
"""What threads are asked for."""


class ClusterScreen(ViewScreen):
    """Shows the nodes of the plan's cluster, where the plan lies on them, and what else runs there.

    Args:
        session: what every screen works with.
    """

    VIEW = "cluster"
    AUTO_FOCUS: ClassVar[str] = "#nodes"
    BINDINGS: ClassVar[list[BindingType]] = bindings("cluster")
    HORIZONTAL_BREAKPOINTS = [(0, "-slender"), (116, "-broad"), (160, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-short"), (32, "-tall")]  # noqa: RUF012

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._node_rows, self._placement, self._queue = Nodes(), PlacementLevels(), Queue()
        self._panels: tuple[Panel, ...] = (self._node_rows, self._placement, self._queue)
        self._current: Panel = self._node_rows
        self._asked: object = None
        self._taking = Taking(session, self, self._node_rows, lambda _: None)
        self.commands = {
            **self.commands,
            **{f"panel.{panel.id}": partial(self._go_to, panel) for panel in self._panels},
            "cluster.take": self._take,
            "cluster.pin": self._pin,
            "cluster.finer": partial(self._node_rows.refine, 1),
            "cluster.coarser": partial(self._node_rows.refine, -1),
            "cluster.next": partial(self._go_beside, 1),
            "cluster.previous": partial(self._go_beside, -1),
            "cluster.copy": self._copy,
        }

    def body(self) -> ComposeResult:
        """Put the nodes beside or above where the plan lies and what else runs."""
        with Container(id="cluster-parts"):
            yield self._node_rows
            with Vertical(id="cluster-aside"):
                yield self._placement
                yield self._queue

    def on_mount(self) -> None:
        """Follow the plan and its numbers."""
        self._mark_current(self._node_rows)
        self.session.plan_changes.subscribe(self, lambda _: self._show_old())
        self.session.answers.subscribe(self, lambda _: self._follow())

    def on_screen_resume(self) -> None:
        """Look at the cluster anew, for the plan as it is now."""
        self._asked = None
        self._follow()

    @on(ClusterSeen)
    def show_cluster(self, event: ClusterSeen) -> None:
        """Show what is known by now."""
        found = event.cluster
        self._placement.show_placement(found.levels, found.remarks)
        if found.nodes is None:
            self._node_rows.message = "looking at the nodes…"
            self._node_rows.repaint()
            return
        self._node_rows.show_nodes(found.nodes)
        self._queue.show_queue(found.queue, found.no_queue)

    @on(PlanPinned)
    def take_pinned(self, event: PlanPinned) -> None:
        """Take up what was pinned."""
        self._taking.take_pinned(event)

    @on(Failed)
    def ask_again(self) -> None:
        """Ask again when there are new numbers; the program says what went wrong."""
        self._asked = None

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Note which panel the keys go to."""
        if isinstance(event.widget, Panel):
            self._mark_current(event.widget)

    def _follow(self) -> None:
        """Ask about the plan that has numbers by now, unless that was done."""
        store = self.session.store
        document, column = store.document, store.mode_column
        if not self.is_current or document is None or column is None or store.is_stale:
            return
        mode = column.mode
        if self._asked != (document, mode):
            self._asked = document, mode
            self.session.ask(self, SEEN, partial(_seen, document, mode))

    def _show_old(self) -> None:
        self._node_rows.show_old()
        self._placement.show_old()

    def _take(self) -> None:
        self._unless_refused(self._taking.take)

    def _pin(self) -> None:
        self._unless_refused(self._taking.pin)

    def _unless_refused(self, work: Callable[[], None]) -> None:
        row = self._node_rows.row
        if row is not None and row.refusal:
            self.session.say(row.refusal, "warn")
        else:
            work()

    def _go_to(self, panel: Panel) -> None:
        self._mark_current(panel)
        # What was out of sight could not keep the focus.
        self.call_after_refresh(panel.focus)

    def _go_beside(self, offset: int) -> None:
        place = self._panels.index(self._current) + offset
        self._go_to(self._panels[place % len(self._panels)])

    def _mark_current(self, panel: Panel) -> None:
        self._current = panel
        self.footer.name_keys_of(panel.scope)
        for other in self._panels:
            other.set_class(other is panel, "-current")
            other.repaint()
        self.query_one("#cluster-aside").set_class(panel is not self._node_rows, "-current")

    def _copy(self) -> None:
        self.session.copy("\n".join(each.plain.rstrip() for each in self._current.lines) + "\n")


def _seen(document: Document, mode: str, request: Request) -> None:
    for cluster in document.clustered(mode):
        request.answer(ClusterSeen(cluster))
