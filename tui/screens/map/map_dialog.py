"""The map of two fields over the plan: walked through by arrows, filled in from a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.messages import CellsTried, Failed
from capacity_tui.tui.requests import Request
from capacity_tui.tui.screens.dialogs.picker import Picker
from capacity_tui.tui.screens.map.map_lines import CELL, Axis, PlanMap, Shown, map_lines
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.tried import Tried
from capacity_tui.tui.terminal.text import Span, line
from capacity_tui.tui.view import Choice, Field
from capacity_tui.tui.widgets.guarded import ClosesOnce
from capacity_tui.tui.widgets.lines import Lines

Pair: TypeAlias = tuple[str, str]
Attempt: TypeAlias = Callable[[Pair, Sequence[Pair]], Iterator[tuple[Mapping[Pair, Tried], bool]]]
"""Tries the plan with pairs of values of two fields, by their keys; says of each answer whether it is the last word."""
_AROUND = 12
"""Cells of the frame, the labels and a margin."""
_BELOW = 10
"""Lines of the frame, the heads and the words below."""


class MapDialog(ModalScreen[Mapping[str, object] | None], ClosesOnce[Mapping[str, object] | None]):
    """Shows the map; returns the pair of values that is taken, as a change of the plan.

    Args:
        session: what every screen works with.
        fields: numbers of the plan.
        keys: the fields across and down to begin with.
        values: returns the values around that of a field, so many each way, and which is its own.
        attempt: tries the plan; runs in a thread.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Cancel"),
        Binding("left,h", "move(-1, 0)", "Left"),
        Binding("right,l", "move(1, 0)", "Right"),
        Binding("up,k", "move(0, -1)", "Up"),
        Binding("down,j", "move(0, 1)", "Down"),
        Binding("enter", "take", "Take"),
        Binding("tab", "turn", "Memory or time"),
        Binding("x", "pick(0)", "Field across"),
        Binding("y", "pick(1)", "Field down"),
    ]

    def __init__(
        self,
        session: Session,
        fields: Sequence[Field],
        keys: Pair,
        values: Callable[[Field, int], tuple[tuple[str, ...], int]],
        attempt: Attempt,
    ) -> None:
        super().__init__()
        self._session = session
        self._fields = {field.key: field for field in fields}
        self._keys = keys
        self._values = values
        self._attempt = attempt
        self._axes: tuple[Axis, Axis] | None = None
        self._cursor = (0, 0)
        self._shown = Shown.MEMORY
        self._tried: dict[Pair, Tried] = {}
        self._settled: frozenset[Pair] = frozenset()
        self._message = ""

    def compose(self) -> ComposeResult:
        """Put the map into a frame."""
        with Vertical(classes="dialog") as frame:
            frame.border_title = Content("Map of two fields")
            frame.border_subtitle = Content("enter takes it, x y fields, tab memory or time")
            yield Lines()

    def on_mount(self) -> None:
        """Try the pairs around the plan's own."""
        self.call_after_refresh(self._begin)

    def on_resize(self) -> None:
        """Lay the map out for the new width."""
        self.call_after_refresh(self._show)

    @on(CellsTried)
    def take_cells(self, event: CellsTried) -> None:
        """Show what came in."""
        self._tried |= event.tried
        if event.settled:
            self._settled |= event.tried.keys()
        self._show()

    @on(Failed)
    def show_failure(self, event: Failed) -> None:
        """Say why nothing comes."""
        event.stop()
        self._message = event.in_short
        self._show()

    def action_move(self, across: int, down: int) -> None:
        """Move the cursor."""
        if self._axes is not None:
            wanted = zip(self._cursor, (across, down), self._axes, strict=True)
            column, row = (max(0, min(at + by, len(axis.values) - 1)) for at, by, axis in wanted)
            self._cursor = column, row
            self._show()

    def action_turn(self) -> None:
        """Show memory, or time, beside the verdicts."""
        self._shown = Shown.TIME if self._shown is Shown.MEMORY else Shown.MEMORY
        self._show()

    def action_take(self) -> None:
        """Return the pair under the cursor, unless it cannot be."""
        if self._axes is None:
            return
        pair = self._map(self._axes).pair
        told = self._tried.get(pair)
        if told is not None and told.verdict is Verdict.CANNOT_RUN:
            return
        self.dismiss(dict(zip(self._keys, pair, strict=True)))

    def action_pick(self, place: int) -> None:
        """Pick another field across or down."""
        other = self._keys[1 - place]
        choices = tuple(Choice(key, each.label, each.group) for key, each in self._fields.items() if key != other)

        def picked(key: str | None) -> None:
            if key is not None:
                self._keys = (key, other) if place == 0 else (other, key)
                self._begin()

        title = "Field across" if place == 0 else "Field down"
        self.app.push_screen(Picker(self._session, title, lambda: choices, self._keys[place]), picked)

    def _begin(self) -> None:
        """Try the pairs of these two fields, those near the plan's own first."""
        size = self.app.size
        each_way = (min(size.width, 84) - _AROUND) // CELL // 2, max(min((size.height - _BELOW) // 2, 4), 1)
        across, down = (
            Axis(self._fields[key], *self._values(self._fields[key], most))
            for key, most in zip(self._keys, each_way, strict=True)
        )
        self._axes = across, down
        self._cursor = across.own, down.own
        self._tried, self._settled, self._message = {}, frozenset(), ""
        places = [(column, row) for row in range(len(down.values)) for column in range(len(across.values))]
        places.sort(key=lambda place: abs(place[0] - across.own) + abs(place[1] - down.own))
        pairs = [(across.values[column], down.values[row]) for column, row in places]
        keys, attempt = self._keys, self._attempt

        def work(request: Request) -> None:
            for tried, settled in attempt(keys, pairs):
                if request.cancelled.is_set():
                    return
                request.answer(CellsTried(tried, settled=settled))

        self._session.ask(self, "map", work)
        self._show()

    def _map(self, axes: tuple[Axis, Axis]) -> PlanMap:
        return PlanMap(*axes, self._tried, self._settled, self._cursor, self._shown)

    def _show(self) -> None:
        lines = self.query_one(Lines)
        if self._axes is None or not lines.size:
            return
        shown = map_lines(self._map(self._axes), lines.size.width)
        row = self._cursor[1] + 2
        lines.show([*shown, line(Span(self._message, "bad"))], range(row, row + 1), pinned=2)
