"""The engine as the screen sees it: benchmarks of this machine, and catalogues to pick from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, cast

from capacity_tui.engine.catalog import Architecture as ArchitectureRow
from capacity_tui.engine.catalog import Catalog, load_catalog, price_age
from capacity_tui.engine.catalog import Instance as InstanceRow
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.machine import Machine, detect
from capacity_tui.engine.machine.benchmark import (
    BenchmarkReport,
    benchmarks_folder,
    busy_text,
    read_reports,
    save_report,
)
from capacity_tui.engine.models import known_models
from capacity_tui.engine.plan import Plan, pinned
from capacity_tui.engine.plan.files import (
    example_names,
    example_text,
    example_title,
    list_plans,
    locate_plan,
    may_be_line,
    plan_from_text,
    plans_folder,
    read_plan_file,
    read_source,
    write_plan_file,
)
from capacity_tui.engine.plan.imports import refuse_files_of_tools
from capacity_tui.engine.plan.line import (
    PlanFlags,
    alternatives,
    completions,
    line_of_flags,
    offered_accelerators,
    read_line,
    vocabulary,
)
from capacity_tui.engine.present import Part, benchmark_figure_text, machine_report_parts
from capacity_tui.engine.solve import plan_of_line, propose
from capacity_tui.engine.units import format_bytes, format_count, format_flops, format_money
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.comparison import HardwareRow, Row
from capacity_tui.tui.shown.results import Choice, Suggestion, Understood
from capacity_tui.tui.view import BenchmarkOutcome, BenchmarkStep, Document
from capacity_tui.tui.views.plan.hardware_facts import LiveSampler, load_rows, machine_rows

if TYPE_CHECKING:
    from capacity_tui.engine.machine.benchmark import Progress as BenchmarkProgress
    from capacity_tui.tui.views.run.present import WatchedRuns


_LOAD_SECONDS = 0.2  # Between two readings of what is busy


class CapacityEngine:
    """The engine, with the catalogues and this machine."""

    def __init__(self) -> None:
        self._catalog = load_catalog()
        self._machine: Machine | None = None
        self._benchmarks = Benchmarks()

    def detect(self) -> tuple[HardwareRow, ...]:
        self._machine = detect()
        return tuple(machine_rows(self._machine))

    def machine_report(self, document: Document | None, ascii_only: bool) -> tuple[Part, ...]:
        machine = self._detected()
        shown = document if isinstance(document, PlanDocument) else self.propose()
        if shown.plan.hardware.name != "detected":
            shown = self.propose()
        parts, measured = machine_report_parts, self._benchmarks
        return tuple(parts(machine, shown.plan, measured.report, self._catalog, ascii_only, measured.before))

    def machine_load(self) -> tuple[Row, ...]:
        sampler = LiveSampler()
        time.sleep(_LOAD_SECONDS)
        return load_rows(self._detected(), sampler.sample())

    def benchmark(self, progress: Callable[[BenchmarkStep], None], cancelled: Event) -> BenchmarkOutcome:
        return self._benchmarks.run(self._detected(), progress, cancelled, self.detect)

    def renewed(self, document: Document) -> Document:
        return replace(document, machine=self._machine) if isinstance(document, PlanDocument) else document

    def propose(self, hardware: str | None = None) -> PlanDocument:
        return self._document(propose(self._machine, hardware, self._catalog))

    def read_line(self, text: str, cursor: int) -> Understood:
        line = read_line(text, self._catalog)
        compared = alternatives(text, self._catalog, line)
        if compared:
            line = read_line(compared[0].text, self._catalog)
        completed = completions(text, cursor, self._catalog)
        return Understood(
            line.understood,
            (*line.guesses, *(f"compared with {other.name}" for other in compared[1:])),
            tuple(fault.one_line() for fault in line.faults),
            tuple(Suggestion(entry.text, entry.kind, entry.line, entry.cursor) for entry in completed),
            line.meaningless,
            # The word under the cursor may still become one of those that complete it.
            tuple(
                (word.start, word.end)
                for word in line.words
                if word.meaning.fault is not None and not (completed and word.end == cursor)
            ),
        )

    def is_line(self, name: str) -> bool:
        return may_be_line(name) and bool(read_line(name, self._catalog).understood)

    def plan_of_line(
        self, text: str, document: Document | None, hardware: str | None = None, *, leaves_out: bool = False
    ) -> tuple[PlanDocument, tuple[str, ...]]:
        compared = alternatives(text, self._catalog)
        if compared:
            first, assumed = self.plan_of_line(compared[0].text, document, hardware)
            plan = first.plan
            for other in compared[1:]:
                planned, further = self.plan_of_line(other.text, document, hardware)
                plan, assumed = pinned(plan, planned.plan, other.name), (*assumed, *further)
            return replace(first, plan=plan), tuple(dict.fromkeys(assumed))
        line = read_line(text, self._catalog)
        if leaves_out:
            line = line.without_meaningless()
        if not line.faults and not line.understood:
            raise PlanError("nothing of it says what to plan", hint="name a model, what is done with it, and where")
        if hardware:
            line = line.changed_by(line_of_flags(PlanFlags(gpu=hardware), line.task, self._catalog))
        before = document.plan.hardware if isinstance(document, PlanDocument) else None
        made = plan_of_line(line, self._detected(), before, self._catalog)
        return replace(self._document(made.plan), asked=made.asked), made.assumed

    def locate(self, source: Path) -> Path | str:
        return locate_plan(str(source))

    def open(self, source: Path | str) -> PlanDocument:
        if isinstance(source, Path):
            plan = read_plan_file(source) if source.parent == plans_folder() else self._plan_of_file(source)
        elif source in example_names():
            plan = plan_from_text(example_text(source), source)
        else:
            plan = plan_from_text(source, "plan")
        return self._document(plan)

    def catalogue(self, name: str) -> tuple[Choice, ...]:
        return choices(name, self._catalog, self._machine)

    def save(self, path: Path, text: str) -> Path | None:
        return write_plan_file(path, text, overwrite=True)

    def plans_folder(self) -> Path:
        return plans_folder()

    def sampler(self) -> LiveSampler:
        return LiveSampler()

    def runs(self, history: str) -> WatchedRuns:
        from capacity_tui.tui.views.run.present import WatchedRuns

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


class Benchmarks:
    """Measures this machine."""

    def __init__(self) -> None:
        # what was measured last; what cannot be kept is shown at least until the program ends
        self.report: BenchmarkReport | None = None
        self.before: BenchmarkReport | None = None  # what was measured before that

    def run(
        self, machine: Machine, progress: Callable[[BenchmarkStep], None], cancelled: Event, renew: Callable[[], object]
    ) -> BenchmarkOutcome:
        """Measure a machine and keep what was measured."""
        from capacity_tui.engine.storage import benchmark_machine

        def on_progress(step: BenchmarkProgress) -> None:
            latest = benchmark_figure_text(step.latest)
            progress(BenchmarkStep(step.group, step.done + 1, step.total, latest))

        earlier = next(iter(read_reports(benchmarks_folder())), None)
        report = benchmark_machine(machine, progress=on_progress, cancelled=cancelled)
        if report.measured:
            self.report, self.before = report, earlier
            save_report(report, benchmarks_folder())
            renew()
        return BenchmarkOutcome(len(report.measured), report.complete, busy_text(report) if report.disturbed else "")


_MIB = 2**20


def choices(name: str, catalog: Catalog, machine: Machine | None) -> tuple[Choice, ...]:
    """Return what can be picked from a catalogue: model, accelerator, interconnect, region, profile or line."""
    readers = {
        "model": lambda: _models(catalog),
        "accelerator": lambda: _hardware(catalog, machine),
        "interconnect": lambda: (Choice(row.id, row.name, row.notes or "") for row in catalog.links.values()),
        "region": lambda: _regions(catalog),
        "profile": _plans,
        "line": _lines,
    }
    return tuple(readers[name]())


def _models(catalog: Catalog) -> Iterator[Choice]:
    """What has parameters of its own last: networks whose layers are known stand there, and only there."""
    for row in catalog.architectures.values():
        if row.id not in catalog.networks:
            yield Choice(row.id, row.id, _size(row), row.family)
    for model in known_models(catalog):
        yield Choice(model.id, model.id, f"{model.title} · {model.best_use}".rstrip(" ·"), model.kind)


def _size(row: ArchitectureRow) -> str:
    size = format_count(row.params_total) if row.params_total else ""
    active = f"{format_count(row.params_active)} active" if row.params_active else ""
    context = f"{format_count(row.max_context, decimals=0)} tokens" if row.max_context else ""
    parts = [size, active if row.experts else "", context]
    return " · ".join(part for part in parts if part)


def _hardware(catalog: Catalog, machine: Machine | None) -> Iterator[Choice]:
    gpus = machine.accelerators if machine else ()
    here = ", ".join(gpu.name.value or gpu.vendor for gpu in gpus) or "no GPU: the processors"
    yield Choice("detected", "detected", f"this machine: {here}")
    for row in offered_accelerators(catalog):
        peak = row.bf16_tflops or row.fp16_tflops or row.fp32_tflops
        speed = format_flops(peak and peak * 1e12, per_second=True)
        yield Choice(row.id, row.id, f"{row.name} · {format_bytes(row.memory_mib * _MIB)} · {speed}")
    for processor in catalog.processors.values():
        yield Choice(processor.id, processor.id, processor.name)
    for instance in catalog.instances.values():
        usd = instance.on_demand_usd_per_hour or instance.spot_usd_per_hour
        yield Choice(instance.id, instance.id, _offer(instance), price=f"{format_money(usd)}/h" if usd else "")


def _offer(row: InstanceRow) -> str:
    is_spot = row.on_demand_usd_per_hour is None and row.spot_usd_per_hour is not None
    parts = (row.region, row.devices_words, f"{row.provider} {row.name}", "spot capacity" if is_spot else "", _age(row))
    return " · ".join(part for part in parts if part)


def _age(row: InstanceRow) -> str:
    mark = price_age(row.price_date).words
    return f"price {mark}" if mark else ""


def _regions(catalog: Catalog) -> Iterator[Choice]:
    """What can be asked for: what an offer says of itself, such as any host of a marketplace, cannot."""
    for row in catalog.regions.values():
        if row.provider or len(row.areas) == 1:
            parts = (row.provider, row.name, ", ".join(row.areas)) if row.provider else ("part of the world", row.name)
            yield Choice(row.id, row.id, " · ".join(filter(None, parts)))


def _plans() -> Iterator[Choice]:
    for saved in list_plans():
        yield Choice(str(saved.path), saved.name, f"your plan, changed {saved.changed:%Y-%m-%d}")
    for name in example_names():
        yield Choice(name, name, example_title(name))


def _lines() -> Iterator[Choice]:
    for line, words in vocabulary().examples.items():
        yield Choice(line, line, words)
