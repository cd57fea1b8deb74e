"""The engine as the screen sees it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import Machine, detect
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import (
    example_names,
    example_text,
    locate_plan,
    may_be_line,
    plan_from_text,
    plans_folder,
    read_plan_file,
    read_source,
    write_plan_file,
)
from capacity_tui.engine.plan.imports import refuse_files_of_tools
from capacity_tui.engine.plan.line import PlanFlags, completions, line_of_flags, read_line
from capacity_tui.engine.present import Part, machine_report_parts
from capacity_tui.engine.solve import plan_of_line, propose
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.comparison import HardwareRow
from capacity_tui.tui.shown.fields import Choice, Suggestion, Understood
from capacity_tui.tui.shown.machine import BenchmarkOutcome, BenchmarkStep, Load
from capacity_tui.tui.view import Document
from capacity_tui.tui.views.dialogs.present import choices
from capacity_tui.tui.views.machine.present import Benchmarks
from capacity_tui.tui.views.plan.hardware_facts import LiveSampler, load_rows, machine_rows
from capacity_tui.tui.views.run.present import WatchedRuns

if TYPE_CHECKING:
    from collections.abc import Callable

_LOAD_SECONDS = 0.2
"""Between two readings of what is busy."""


class CapacityEngine:
    """The engine, with the catalogues and this machine."""

    def __init__(self) -> None:
        self._catalog = load_catalog()
        self._machine: Machine | None = None
        self._benchmarks = Benchmarks()

    def detect(self) -> tuple[HardwareRow, ...]:
        """Look at this machine."""
        self._machine = detect()
        return machine_rows(self._machine)

    def machine_report(self, document: Document | None, ascii_only: bool) -> tuple[Part, ...]:
        """Return all that is known about this machine, and what the plan meets on it."""
        machine = self._detected()
        shown = document if isinstance(document, PlanDocument) else self.propose()
        if shown.plan.hardware.name != "detected":
            shown = self.propose()
        parts, measured = machine_report_parts, self._benchmarks
        return tuple(parts(machine, shown.plan, measured.report, self._catalog, ascii_only, measured.before))

    def machine_load(self) -> tuple[Load, ...]:
        """Return how full and how busy this machine is."""
        sampler = LiveSampler()
        time.sleep(_LOAD_SECONDS)
        return load_rows(self._detected(), sampler.sample())

    def benchmark(self, progress: Callable[[BenchmarkStep], None], cancelled: Event) -> BenchmarkOutcome:
        """Measure this machine, keep what was measured, and look at the machine again."""
        return self._benchmarks.run(self._detected(), progress, cancelled, self.detect)

    def renewed(self, document: Document) -> Document:
        """Return the same plan on this machine as it was last looked at."""
        return replace(document, machine=self._machine) if isinstance(document, PlanDocument) else document

    def propose(self, hardware: str | None = None) -> PlanDocument:
        """Return a plan that suits this machine, or other hardware, such as ``8xH100-SXM``."""
        return self._document(propose(self._machine, hardware, self._catalog))

    def read_line(self, text: str, cursor: int) -> Understood:
        """Return what a line says."""
        line = read_line(text, self._catalog)
        completed = completions(text, cursor, self._catalog)
        return Understood(
            line.understood,
            line.guesses,
            tuple(fault.one_line() for fault in line.faults),
            tuple(Suggestion(entry.text, entry.kind, entry.line, entry.cursor) for entry in completed),
        )

    def is_line(self, name: str) -> bool:
        """Return whether a name is no plan's but a line that says one, at least in part."""
        return may_be_line(name) and bool(read_line(name, self._catalog).understood)

    def plan_of_line(
        self, text: str, document: Document | None, hardware: str | None = None
    ) -> tuple[PlanDocument, tuple[str, ...]]:
        """Return the plan that a line says, and what was guessed."""
        line = read_line(text, self._catalog)
        if hardware:
            line = line.changed_by(line_of_flags(PlanFlags(gpu=hardware), line.task, self._catalog))
        before = document.plan.hardware if isinstance(document, PlanDocument) else None
        made = plan_of_line(line, self._detected(), before, self._catalog)
        return self._document(made.plan), made.assumed

    def locate(self, source: Path) -> Path | str:
        """Return the file that is meant by a path or the name of a saved plan; an example has its name alone."""
        return locate_plan(str(source))

    def open(self, source: Path | str) -> PlanDocument:
        """Read a plan from a file, an example by name, or text."""
        if isinstance(source, Path):
            plan = read_plan_file(source) if source.parent == plans_folder() else self._plan_of_file(source)
        elif source in example_names():
            plan = plan_from_text(example_text(source), source)
        else:
            plan = plan_from_text(source, "plan")
        return self._document(plan)

    def catalogue(self, name: str) -> tuple[Choice, ...]:
        """Return what can be picked."""
        return choices(name, self._catalog, self._machine)

    def save(self, path: Path, text: str) -> Path | None:
        """Write a plan; return where a damaged file that was there went."""
        return write_plan_file(path, text, overwrite=True)

    def plans_folder(self) -> Path:
        """Return where plans are saved under a name."""
        return plans_folder()

    def sampler(self) -> LiveSampler:
        """Return the reader of this machine's sensors."""
        return LiveSampler()

    def runs(self, history: str) -> WatchedRuns:
        """Return the reader of runs that go on and are past."""
        return WatchedRuns(self._catalog, self._detected, self._document, history)

    def _plan_of_file(self, path: Path) -> Plan:
        source = read_source(str(path))
        refuse_files_of_tools(source.document)
        return source.plan()

    def _detected(self) -> Machine:
        if self._machine is None:
            self.detect()
        return cast("Machine", self._machine)

    def _document(self, plan: Plan) -> PlanDocument:
        return PlanDocument(plan, self._machine, self._catalog)
