"""The view of a cluster: its nodes, what the plan puts where, and the queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import Table
from capacity_tui.tui.text import Line, Span, fit, left, line, marked, plain_text, wrap
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.view_screen import PanelScreen, RowActions, size_classes
from capacity_tui.tui.widgets.lines import TableLayout
from capacity_tui.tui.widgets.panel import HeadedPanel, Panel

if TYPE_CHECKING:
    from capacity_tui.tui.shown.scale import Clustered, DeviceState, NodeMap, NodesRow

SEEN = "cluster"  # What threads are asked for


class ClusterScreen(PanelScreen):
    """Shows the nodes of the plan's cluster, where the plan lies on them, and what else runs there."""

    VIEW = "cluster"
    FOCUSES_LATER = True
    AUTO_FOCUS: ClassVar[str] = "#nodes"
    HORIZONTAL_BREAKPOINTS = size_classes(slender=0, broad=116, wide=160)
    VERTICAL_BREAKPOINTS = size_classes(low=0, short=16, tall=32)

    def __init__(self, session: Session) -> None:
        self._node_rows, self._placement, self._queue = Nodes(), PlacementLevels(), Queue()
        super().__init__(session, (self._node_rows, self._placement, self._queue))
        self._requested: object = None
        self._row_actions = RowActions(session, self, self._node_rows, lambda _: None)
        self.commands = {
            **self.commands,
            **self.panel_commands,
            "cluster.take": partial(self._unless_refused, self._row_actions.take),
            "cluster.pin": partial(self._unless_refused, self._row_actions.pin),
            "cluster.finer": partial(self._node_rows.refine, 1),
            "cluster.coarser": partial(self._node_rows.refine, -1),
            "cluster.next": partial(self.go_around, 1),
            "cluster.previous": partial(self.go_around, -1),
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
        self.mark_current(self._node_rows)
        self.session.plan_changes.subscribe(self, lambda _: self._show_old())
        self.session.answers.subscribe(self, lambda _: self._follow())

    def on_screen_resume(self) -> None:
        self._requested = None
        self._follow()

    def _show_cluster(self, cluster: Clustered) -> None:
        self._placement.show_placement(cluster.placement)
        if cluster.nodes is None:
            self._node_rows.message = "reading the nodes…"
            self._node_rows.repaint()
            return
        self._node_rows.show_nodes(cluster.nodes)
        self._queue.show_queue(cluster.queue)

    def _show_failure(self, fault: Fault) -> None:
        """Say what went wrong, and ask again when there are new numbers."""
        self._requested = None
        self.session.fail(fault)

    def _follow(self) -> None:
        """Ask about the plan that has numbers by now, unless that was done."""
        store = self.session.store
        document, column = store.document, store.mode_column
        if not self.is_current or document is None or column is None or store.is_stale:
            return
        mode = column.mode
        if self._requested != (document, mode):
            self._requested = document, mode
            work = partial(_seen, document, mode)
            self.session.ask(self, SEEN, work, self._show_cluster, failed=self._show_failure)

    def _show_old(self) -> None:
        self._node_rows.show_old()
        self._placement.show_old()

    def drawings(self) -> Iterator[tuple[str, str]]:
        yield from self._node_rows.drawings()

    def _unless_refused(self, work: Callable[[], None]) -> None:
        row = self._node_rows.row
        if row is not None and row.refusal:
            self.session.say(row.refusal, "warn")
        else:
            work()

    def mark_current(self, panel: Panel) -> None:
        super().mark_current(panel)
        self.topic = self.VIEW
        self.query_one("#cluster-aside").set_class(panel is not self._node_rows, "-current")

    def _copy(self) -> None:
        self.session.copy(plain_text(self.current.lines))


def _seen(document: Document, mode: str, request: Request[Clustered]) -> None:
    for cluster in document.clustered(mode):
        request.answer(cluster)


GLYPHS: dict[DeviceState, str] = {"planned": "■", "free": "░", "busy": "▒", "down": "✗"}
_ROLES: dict[DeviceState, str] = {"planned": "accent", "free": "good", "busy": "warn", "down": "bad"}
_COLOURS: dict[DeviceState, str] = {"planned": "blue", "free": "green", "busy": "yellow", "down": "red"}
"""What states are drawn in on a picture."""

_LONGEST_NAME = 24


class Nodes(HeadedPanel):
    """Rows of nodes, first all of them; those of another plan stay, dimmed, until others come."""

    NUMBER = 1
    TITLE = "Nodes"
    KEYS = "{cluster.take} uses free nodes · {cluster.finer} {cluster.coarser} finer, coarser"

    def __init__(self) -> None:
        super().__init__()
        self.taken: tuple[tuple[str, str], ...] = ()  # key of the row that was taken over last
        self.message = "waiting for the plan's numbers…"
        self._map: NodeMap | None = None
        self._level = ""

    @property
    def rows(self) -> tuple[NodesRow, ...]:
        return () if self._map is None else self._map.rows[self._shown_level]

    @property
    def row(self) -> NodesRow | None:
        """The row under the cursor, unless it is one of another plan."""
        rows = () if self.is_old else self.rows
        return rows[self.cursor] if self.cursor < len(rows) else None

    def chosen(self) -> tuple[NodesRow, ...]:
        return () if self.row is None or not self.row.change else (self.row,)

    def show_nodes(self, nodes: NodeMap) -> None:
        self._map, self.is_old = nodes, False
        self.keep_cursor()
        self.repaint()

    def refine(self, offset: int) -> None:
        """Let rows stand for less, or for more."""
        if self._map is None:
            return
        levels = self._map.levels
        place = levels.index(self._shown_level) - offset
        self._level, self.cursor = levels[max(0, min(place, len(levels) - 1))], 0
        self.repaint()

    def about(self) -> tuple[str, str]:
        if self.row is None:
            return "", ""
        parts = (self.row.counts, self.row.hardware, *self.row.notes)
        return self.row.name, ". ".join(part for part in parts if part)

    def item_count(self) -> int:
        return len(self.rows)

    def edge(self) -> str:
        if self._map is None:
            return ""
        level = f"by {'kind' if self._shown_level == 'all' else self._shown_level}"
        return f"an example · {level}" if self._map.is_example else level

    def build(self, width: int) -> tuple[list[Line], range | None]:
        if self._map is None:
            return self.lines_of_message()
        rows = self.rows
        names = min(max(cell_len(row.name) for row in rows), _LONGEST_NAME)
        counts = max(cell_len(row.counts) for row in rows)
        lines = [fit(self._legend(self._map), width)]
        for index, row in enumerate(rows):
            notes = "  ".join(part for part in (row.hardware, *row.notes) if part)
            spans = (
                Span(
                    f"{left(row.name, names)}  {left(row.counts, counts)}  ",
                    self.toned("best" if index == 0 else "value"),
                ),
                *self._cells(row.cells),
                Span(f"  {notes}" if notes else "", self.toned("warn" if row.notes else "label")),
            )
            lines.append(fit(marked(index == self.cursor, *spans), width))
        return lines, self.around_cursor

    def drawings(self) -> Iterator[tuple[str, str]]:
        from capacity_tui.engine.present.pictures import Grid, grid_file

        if self._map is not None:
            states = ", ".join(f"{colour} {state}" for state, colour in _COLOURS.items())
            title = f"{'EXAMPLE, made up. ' if self._map.is_example else ''}Nodes ({states})"
            rows = tuple((row.name, tuple((_ROLES[state], "") for state in row.cells)) for row in self.rows)
            yield "Nodes", grid_file(Grid(title, (), rows))

    def _cells(self, cells: tuple[DeviceState, ...]) -> list[Span]:
        drawn = [Span(GLYPHS[state] * len(list(alike)), self.toned(_ROLES[state])) for state, alike in groupby(cells)]
        return [Span("[", "dim"), *drawn, Span("]", "dim")]

    def _legend(self, nodes: NodeMap) -> Line:
        mark = (Span(" EXAMPLE, made up ", "badge"),) if nodes.is_example else ()
        pairs = [(Span(f" {glyph}", _ROLES[state]), Span(f" {state} ", "label")) for state, glyph in GLYPHS.items()]
        return line(*mark, *chain.from_iterable(pairs), Span(f" {nodes.source}", "dim"))

    @property
    def _shown_level(self) -> str:
        """What a row stands for: what was asked for where there is that, else what is read at a glance."""
        if self._map is None:
            return ""
        return self._level if self._level in self._map.levels else self._map.usual


class PlacementLevels(Panel):
    """Levels from the outermost in, and sentences below; those of another plan stay, dimmed, until others come."""

    NUMBER = 2
    TITLE = "Placement"

    def __init__(self) -> None:
        super().__init__()
        self.message = "waiting for the plan's numbers…"
        self._table = Table()

    def show_placement(self, table: Table) -> None:
        self._table, self.is_old = table, False
        self.message = "this runs on one device, or is not split"
        self.repaint()

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the levels out in the columns that there is room for, sentences below."""
        table = self._table
        if not table.rows and not table.remarks:
            return self.lines_of_message()
        lines: list[Line] = []
        if table.rows:
            layout = TableLayout.of(table.columns, [row.cells for row in table.rows], width - 2)
            lines.append(line(Span(f"  {layout.heads}", "heading")))
        for row in table.rows:
            mark = Span("▸ " if row.stands_out else "  ", self.toned("warn"))
            lines.append(line(mark, Span(layout.text(row.cells), self.toned("best" if row.stands_out else "value"))))
        for remark in table.remarks:
            lines += [line(Span(f" {text}", self.toned("label"))) for text in wrap(remark, width - 2, "  ")]
        return lines, None


class Queue(HeadedPanel):
    """Jobs in the order of the queue, or why there are none."""

    NUMBER = 3
    TITLE = "Queue"

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()

    def show_queue(self, table: Table) -> None:
        self._table = table
        self.keep_cursor()
        self.repaint()

    def item_count(self) -> int:
        return len(self._table.rows)

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the jobs out in the columns that there is room for."""
        table = self._table
        if not table.rows:
            return [line(Span(f" {text}", "label")) for text in wrap(" ".join(table.remarks), width - 2)], None
        layout = TableLayout.of(table.columns, [row.cells for row in table.rows], width - 1)
        lines = [line(Span(f" {layout.heads}", "heading"))]
        for index, row in enumerate(table.rows):
            text = Span(layout.text(row.cells), "value" if row.stands_out else "label")
            lines.append(marked(index == self.cursor and self.is_current, text))
        lines += [line(Span(f" {text}", "accent")) for text in wrap(" ".join(table.remarks), width - 2)]
        return lines, self.around_cursor
