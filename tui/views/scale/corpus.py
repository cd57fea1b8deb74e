"""Panels of the view of scaling that are edited: devices, the plan on some number of them a line, and the corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from typing import ClassVar

from textual.binding import BindingType

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.schema import stepped
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.actions import Commands, bindings
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.results import AUTO, Field
from capacity_tui.tui.shown.scale import GROWTHS, SAMPLES, WAITS, Corpus, ScaledPlan, ScaledRow
from capacity_tui.tui.text import Line, Span, line, marked
from capacity_tui.tui.views.plan.field_list import FieldList, value_commands
from capacity_tui.tui.widgets.head import gauge, mark_of
from capacity_tui.tui.widgets.lines import TableLayout
from capacity_tui.tui.widgets.panel import HeadedPanel
from capacity_tui.tui.widgets.prompt import Ask


class CorpusFields(FieldList):
    """The fields of the corpus; what is automatic follows the plan, or what is usual."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("levels")
    NUMBER = 3
    TITLE = "Corpus"
    SCOPE = "config"
    KEYS = "{value.type:last} edit · {value.auto} auto"


Given = Mapping[str, str]


class CorpusEdits:
    """Holds what is said of the corpus, and changes the field under the cursor."""

    def __init__(self, session: Session, fields: CorpusFields, ask: Ask, changed: Callable[[], object]) -> None:
        self.corpus: Corpus | None = None  # the corpus; None before anything is known of it
        # samples whose patterns the disk has room for; None where that is not known
        self.most_samples: float | None = None
        self._session, self._fields, self._ask, self._changed = session, fields, ask, changed
        self._undone: list[Given] = []
        self._done: list[Given] = []
        self.commands: Commands = {
            **value_commands(self.step, self.type_value, self.automatic),
            "value.limit": self.fill_disk,
        }

    @property
    def given(self) -> Given:
        return {} if self.corpus is None else self.corpus.given

    def show(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._fields.show_error("", "")
        self._fields.show_fields(corpus.fields(), corpus.chosen(), dict.fromkeys(corpus.given, AUTO), {})

    def step(self, direction: int, big: bool = False) -> None:
        field = self._fields.field
        if field is not None:
            text = stepped(field, direction, big, self._fields.chosen)
            if text is not None:
                self._change(field, text)

    def type_value(self) -> None:
        field = self._fields.field
        if field is not None:
            unit = f" in {field.unit}" if field.unit else ""
            self._ask(f"{field.label}{unit}", "" if field.is_auto else field.text, partial(self._change, field))

    def automatic(self) -> None:
        """Say nothing of the field under the cursor any more."""
        if self._fields.field is not None:
            self._change(self._fields.field, "")

    def fill_disk(self) -> None:
        field = self._fields.field
        if field is None or field.key != SAMPLES:
            self._session.say("only the samples have a limit: the free disk space")
        elif self.most_samples is None:
            self._session.say("the free disk space is not known", "warn")
        else:
            self._change(field, f"{self.most_samples:.0f}")

    def undo(self) -> bool:
        return self._travel(self._done, self._undone)

    def redo(self) -> bool:
        """Do again what was taken back; return whether there was anything."""
        return self._travel(self._undone, self._done)

    def _change(self, field: Field, text: str) -> str:
        """Say a field otherwise; return why that was refused, or an empty text."""
        if self.corpus is None:
            return ""
        try:
            after = self.corpus.edited(field.key, text)
        except CapacityError as error:
            refusal = error.in_place()
            self._fields.show_error(field.key, refusal)
            return refusal
        if after.given != self.given:
            self._done.append(self.given)
            self._undone.clear()
            self.show(after)
            self._changed()
        return ""

    def _travel(self, back: list[Given], forth: list[Given]) -> bool:
        if not back or self.corpus is None:
            return False
        forth.append(self.given)
        after, wanted = self.corpus, back.pop()
        for key in {**after.given, **wanted}:
            after = after.edited(key, wanted.get(key, ""))
        self.show(after)
        self._changed()
        return True


_MARKS = 4  # Cells in front of the first column: cursor, verdict
_BAR = 8
_ENDS = 2  # Rows that are left of those that do not fit, one after another


class Devices(HeadedPanel):
    """Rows by rising number of devices; those of another plan stay, dimmed, until they come anew."""

    NUMBER = 1
    TITLE = "Devices"
    KEYS = "{scale.take} apply · {scale.pin} pin · {scale.growth} strong or weak"

    def __init__(self) -> None:
        super().__init__()
        self.plan: ScaledPlan | None = None  # what is known
        self.taken: tuple[tuple[str, str], ...] = ()  # key of the row that was taken over last
        self.message = "waiting for the plan's numbers…"
        self._before: tuple[ScaledRow, ...] = ()
        self._widths: tuple[int, ...] = ()
        self._was_moved = False

    @property
    def rows(self) -> tuple[ScaledRow, ...]:
        """The rows that are shown: new ones, and old ones where none came yet; of those that do not fit the ends."""
        groups = (tuple(group) for _, group in groupby(self._known, _is_unfit))  # that follow each other
        return tuple(row for rows in groups for row in _folded(rows))

    @property
    def _known(self) -> tuple[ScaledRow, ...]:
        if self.plan is None:
            return ()
        new = self.plan.rows
        known = new[-1].devices if new else 0
        return new if self.plan.is_complete else (*new, *(row for row in self._before if row.devices > known))

    @property
    def row(self) -> ScaledRow | None:
        """The row under the cursor, unless it is one of another plan."""
        new = () if self.plan is None or self.is_old else self.plan.rows
        shown = self.rows
        return shown[self.cursor] if self.cursor < len(shown) and shown[self.cursor] in new else None

    def chosen(self) -> tuple[ScaledRow, ...]:
        return () if self.row is None else (self.row,)

    def show_plan(self, plan: ScaledPlan) -> None:
        """Show what is known by now; the cursor stays on its count, at first on the plan's own."""
        here = self.rows[self.cursor].devices if self._was_moved and self.cursor < len(self.rows) else None
        if self.is_old or self.plan is None:
            self._before = self.rows
        if self.plan is None or self.plan.columns != plan.columns:
            self._before, self._widths = (), ()
        self.plan, self.is_old = plan, False
        counts = [row.devices == here if here is not None else row.is_own for row in self.rows]
        self.cursor = counts.index(True) if True in counts else self.cursor
        self.keep_cursor()
        self.repaint()
        self.post_message(self.CursorMoved(self))

    def move_to(self, index: int) -> None:
        self._was_moved = True
        super().move_to(index)

    def about(self) -> tuple[str, str]:
        if self.row is None:
            return "", ""
        return (
            f"{self.row.cells[0]} devices",
            "Speed-up is throughput over that of one device at its best; efficiency is speed-up per device. The knee "
            "is where their product is largest: beyond it each further device costs more than it gains. $/h saved is "
            "the price of each hour by which the job ends sooner than in the row above.",
        )

    def item_count(self) -> int:
        return len(self.rows)

    def edge(self) -> str:
        """Return what stays the same for all rows, and whether more are to come."""
        if self.plan is None:
            return ""
        kept = f"{self.plan.growth}: {GROWTHS[self.plan.growth]}"
        folded = len(self._known) - len(self.rows)
        hidden = f" · {folded} more do not fit" if folded else ""
        return f"{kept}{hidden}{'' if self.plan.is_complete else ', still computing…'}"

    def build(self, width: int) -> tuple[list[Line], range | None]:
        """Lay the rows out under their heads, in the columns that there is room for."""
        plan, rows = self.plan, self.rows
        if plan is None or not rows:
            return self.lines_of_message()
        texts = [self._cells(row) for row in rows]
        # While rows come in the columns only get wider.
        layout = TableLayout.of(plan.columns, texts, width - _MARKS, before=self._widths)
        self._widths = layout.widest
        lines = [line(" " * _MARKS, Span(layout.heads, "heading"))]
        is_waiting = [plan.columns[index].title == WAITS for index in layout.indices]
        for index, (row, cells) in enumerate(zip(rows, texts, strict=True)):
            bound = ("warn" if row.is_bound and waits else "" for waits in is_waiting)
            spans = [Span(text, role) for text, role in zip(layout.cells(cells), bound, strict=True)]
            lines.append(self._line(row, spans, at_cursor=index == self.cursor))
        return lines, self.around_cursor

    def _cells(self, row: ScaledRow) -> tuple[str, ...]:
        """Return the texts of a row: marks behind the count, a bar before the efficiency."""
        mark = "knee" if row.is_knee else "plan" if row.is_own else ""
        count, time, speedup, efficiency, *rest = row.cells
        bar = gauge(row.efficiency, _BAR) if row.efficiency is not None else ""
        return (f"{mark} {count}".lstrip(), time, speedup, f"{bar} {efficiency:>5}".lstrip(), *rest)

    def _line(self, row: ScaledRow, cells: list[Span], *, at_cursor: bool) -> Line:
        is_new = not self.is_old and self.plan is not None and row in self.plan.rows
        mark = mark_of(row.verdict)
        tone = "best" if row.is_own or row.is_knee else "value"
        return marked(
            at_cursor,
            Span(f"{mark.text}  ", mark.role if is_new else "dim"),
            *(Span(cell.text, cell.role or tone if is_new else "dim") for cell in cells),
        )


def _folded(rows: tuple[ScaledRow, ...]) -> tuple[ScaledRow, ...]:
    """Return the first and the last of rows that do not fit, others as they are."""
    return (rows[0], rows[-1]) if len(rows) > _ENDS and _is_unfit(rows[0]) else rows


def _is_unfit(row: ScaledRow) -> bool:
    return row.verdict is Verdict.DOES_NOT_FIT and not row.is_own
