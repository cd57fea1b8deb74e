"""The view of scaling: what more devices bring, what the plan stores, and what patterns of its data take to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.timer import Timer

from capacity_tui.tui.actions import Commanded
from capacity_tui.tui.requests import Fault, Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.scale import GROWTHS, STRONG, Corpus, ScaledPlan, StoredPatterns
from capacity_tui.tui.text import plain_text
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.plan.estimates import swept
from capacity_tui.tui.views.scale.corpus import CorpusEdits, CorpusFields, Devices
from capacity_tui.tui.views.scale.panels import Levels, PatternCharts, Remarks, ScaledPictures, Storage
from capacity_tui.tui.views.view_screen import PanelScreen, RowActions, size_classes
from capacity_tui.tui.widgets.panel import Panel
from capacity_tui.tui.widgets.prompt import Prompt

SCALED, STORED, CORPUS, SWEEP = "scale", "stored", "corpus", "sweep"  # What threads are asked for
PATTERNS, STORAGE, PICTURES = "-patterns", "-storage", "-pictures"
"""Classes of the screen while patterns are shown in place of devices, while storage is current, and while pictures
stand in place of rows."""


_PATIENCE_SECONDS = 0.5  # Old levels are dimmed when new ones have not come for this long


class ScaleScreen(PanelScreen):
    """Shows the plan on more devices and what it stores; or what patterns of its data take to keep."""

    VIEW = "scale"
    AUTO_FOCUS: ClassVar[str] = "#devices"
    HORIZONTAL_BREAKPOINTS = size_classes(thin=0, slender=70, broad=116, wide=160)
    VERTICAL_BREAKPOINTS = size_classes(low=0, short=16, middle=23, tall=32)

    def __init__(self, session: Session) -> None:
        self._devices, self._storage = Devices(), Storage()
        self._pictures, self._remarks = ScaledPictures(session.glyphs), Remarks()
        self._fields, self._levels, self._charts = CorpusFields(), Levels(), PatternCharts(session.glyphs)
        self._prompt = Prompt()
        super().__init__(session, (self._devices, self._storage, self._fields, self._levels))
        self._growth = STRONG
        self._requested: dict[str, object] = {}
        self._row_actions = RowActions(session, self, self._devices, lambda _: None)
        self._late: Timer | None = None
        self._edits = CorpusEdits(session, self._fields, self._prompt.ask, self._follow_corpus)
        self.commands = {
            **self.commands,
            **self._edits.commands,
            **self.panel_commands,
            "scale.take": self._row_actions.take,
            "scale.pin": self._row_actions.pin,
            "scale.growth": self._change_growth,
            "scale.beside": self._go_across,
            "scale.pictures": self._show_pictures,
            "scale.command": self._copy_command,
            "scale.copy": self._copy,
            "edit.undo": partial(self._travel, "edit.undo", self._edits.undo),
            "edit.redo": partial(self._travel, "edit.redo", self._edits.redo),
        }

    def body(self) -> ComposeResult:
        """Put the rows above what there is to say of them, and the pictures below; patterns in another page."""
        with Vertical(id="scaled"):
            yield self._devices
            yield self._remarks
            with Horizontal(id="below"):
                yield self._pictures
                yield self._storage
        with Horizontal(id="patterns"):
            yield self._fields
            with Vertical(id="kept"):
                yield self._levels
                yield self._charts
        yield self._prompt

    def on_mount(self) -> None:
        self.mark_current(self._devices)
        self.session.plan_changes.subscribe(self, lambda _: self._show_old())
        self.session.answers.subscribe(self, lambda _: self._follow())

    def on_screen_resume(self) -> None:
        self._follow()

    # What the threads report

    def _show_plan(self, plan: ScaledPlan) -> None:
        self._devices.message = "this runs on one device, and is not split"
        self._devices.show_plan(plan)
        self._remarks.show_remarks(plan.remarks if plan.is_complete else ("trying more devices…",))

    def _show_corpus(self, corpus: Corpus, patterns: StoredPatterns | None) -> None:
        """Show what corpus the plan has, and what its patterns take once that is known."""
        if patterns is None:
            self._edits.show(corpus)
            return
        if self._late is not None:
            self._late.stop()
        self._edits.most_samples = patterns.most_samples
        self._levels.show_patterns(patterns)
        self._follow_cursor()

    def _show_failure(self, subject: str, show: Callable[[str], object] | None, fault: Fault) -> None:
        """Say what went wrong, and ask again when there are new numbers."""
        self._requested.pop(subject, None)
        if show is not None:
            show(fault.in_short)
        self.session.fail(fault)

    # What the panels report

    @on(Panel.CursorMoved, "#devices")
    def show_row(self) -> None:
        row = self._devices.row
        self._pictures.show_plan(self._devices.plan, row.devices if row else None)

    @on(Panel.CursorMoved, "#corpus")
    def forget_refusal(self) -> None:
        """Clear the error of the field that was left, and try the values around that of the other."""
        self._fields.show_error("", "")
        self._follow_cursor()

    @on(Panel.CursorMoved, "#levels")
    def show_level(self) -> None:
        """Show how often patterns of the level under the cursor occur."""
        patterns, level = self._levels.patterns, self._levels.level
        if patterns is not None and level is not None:
            self._charts.charts = patterns.growth, level.frequencies

    # Commands

    def back(self) -> None:
        """Show rows again where pictures stand alone, then devices; else go back to the plan."""
        if self.has_class(PICTURES):
            self._show_pictures()
        elif self.current is not self._devices:
            self.go_to(self._devices)
        else:
            super().back()

    @property
    def back_does(self) -> str:
        return "shows devices" if self.has_class(PICTURES) or self.current is not self._devices else super().back_does

    def go_to(self, panel: Panel) -> None:
        self.remove_class(PICTURES)
        super().go_to(panel)
        self._follow()

    def _go_across(self) -> None:
        others = {self._devices: self._storage, self._storage: self._devices}
        others |= {self._fields: self._levels, self._levels: self._fields}
        self.go_to(others[self.current])

    def mark_current(self, panel: Panel) -> None:
        """Mark a panel, which decides what is shown on a small terminal."""
        self.set_class(panel in (self._fields, self._levels), PATTERNS)
        self.set_class(panel is self._storage, STORAGE)
        super().mark_current(panel)
        self.query_one("#kept").set_class(panel is self._levels, "-current")

    def _show_pictures(self) -> None:
        """Show pictures alone, or rows again."""
        self.toggle_class(PICTURES)
        # What was out of sight could not keep the focus.
        self.call_after_refresh(self.current.focus)

    def drawings(self) -> Iterator[tuple[str, str]]:
        yield from (self._charts if self.has_class(PATTERNS) else self._pictures).drawings()

    def _change_growth(self) -> None:
        """Keep the batch of each device in place of that of all, or the other way round."""
        kinds = tuple(GROWTHS)
        self._growth = kinds[(kinds.index(self._growth) + 1) % len(kinds)]
        self._devices.show_old()
        self._follow()

    def _copy(self) -> None:
        by_panel = {self._devices: (*self._devices.lines, *self._remarks.lines), self._storage: self._storage.lines}
        lines = by_panel.get(self.current, self._levels.lines)
        self.session.copy(plain_text(lines))

    def _copy_command(self) -> None:
        if self._edits.corpus is not None:
            self.session.copy(self._edits.corpus.command() + "\n", "command.txt")

    def _travel(self, action: str, travel: Callable[[], bool]) -> None:
        """Undo or redo what was said of the corpus while it is shown; else what was edited of the plan."""
        plan = self.app.screen_stack[0]
        if not (self.has_class(PATTERNS) and travel()) and isinstance(plan, Commanded):
            plan.commands[action]()

    # What is asked of threads

    def _show_old(self) -> None:
        self._devices.show_old()
        self._storage.show_old()
        if self.is_current and self.has_class(PATTERNS):
            self._follow_corpus()

    def _follow(self) -> None:
        """Ask about the plan that has numbers by now, or about its corpus, which needs none, unless that was done."""
        store = self.session.store
        document, column = store.document, store.mode_column
        if not self.is_current:
            return
        if self.has_class(PATTERNS):
            self._follow_corpus()
            return
        if document is None or column is None or store.is_stale:
            return
        mode, growth = column.mode, self._growth
        if self._is_new(SCALED, (document, mode, growth)):
            self._devices.show_old()
            failed = partial(self._show_failure, SCALED, lambda text: self._remarks.show_remarks((text,)))
            self.session.ask(self, SCALED, partial(_scaled, document, mode, growth), self._show_plan, failed=failed)
        if self._is_new(STORED, (document, mode)):
            failed = partial(self._show_failure, STORED, None)
            self.session.ask(self, STORED, lambda _: document.stored(mode), self._storage.show_rows, failed=failed)

    def _follow_cursor(self) -> None:
        """Have the values around that of the field under the cursor tried, unless they are known."""
        corpus, field = self._edits.corpus, self._fields.field
        if corpus is not None and field is not None and self._is_new(SWEEP, (corpus, field.key)):
            work = partial(swept, self._fields.values_around(), partial(corpus.trial, field.key))
            self.session.ask(self, SWEEP, work, self._fields.show_trials)

    def _follow_corpus(self) -> None:
        """Ask what the patterns take of what is said of the corpus, unless that was done."""
        document, given = self.session.store.document, self._edits.given
        if document is not None and self._is_new(CORPUS, (document, given)):
            # Mostly the answer is there before anybody would see the old one dimmed.
            if self._late is not None:
                self._late.stop()
            self._late = self.set_timer(_PATIENCE_SECONDS, self._levels.show_old)
            self._edits.most_samples = None
            failed = partial(self._show_failure, CORPUS, self._levels.show_old)
            work = partial(_stored_patterns, document, given)
            self.session.ask(self, CORPUS, work, lambda answer: self._show_corpus(*answer), failed=failed)

    def _is_new(self, subject: str, requested: object) -> bool:
        """Return whether something else was asked for last, and note what is asked for now."""
        is_new = self._requested.get(subject) != requested
        self._requested[subject] = requested
        return is_new


def _scaled(document: Document, mode: str, growth: str, request: Request[ScaledPlan]) -> None:
    for plan in document.scaled(mode, growth):
        if request.cancelled.is_set():
            return
        request.answer(plan)


def _stored_patterns(
    document: Document, given: Mapping[str, str], request: Request[tuple[Corpus, StoredPatterns | None]]
) -> tuple[Corpus, StoredPatterns]:
    corpus = document.corpus(given)
    request.answer((corpus, None))
    return corpus, corpus.patterns()
