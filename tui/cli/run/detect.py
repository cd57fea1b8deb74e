"""``detect`` and ``configs``: what this machine is, and what to run on it."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import cluster as clusters
from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import machine as machines
from capacity_tui.engine import plan as plans
from capacity_tui.engine import present, solve, storage
from capacity_tui.engine.errors import Place, StorageError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import benchmark as benchmarks
from capacity_tui.engine.present import storage as storage_texts
from capacity_tui.engine.solve import advice as advising
from capacity_tui.engine.solve import modes
from capacity_tui.engine.units import parse_quantity
from capacity_tui.tui.cli.options import options, output_options
from capacity_tui.tui.cli.output import Output, interrupted, tell

if TYPE_CHECKING:
    from rich.console import RenderableType


_USUAL = ("500", "15", "4")


def forecast_of(text: str, machine: machines.Machine) -> storage.LearningForecast:
    """Return what would hold up learning what the option says."""
    return storage.learning_forecast(pattern_question(text), machine, catalogs.load_catalog())


def pattern_question(text: str) -> storage.PatternQuestion:
    """Return what the option asks; raises CapacityError where it cannot be read."""
    given = text.split(",")
    if len(given) > 1 + len(_USUAL):
        raise click.UsageError(f"--learn takes four numbers at most, not {text!r}")
    texts = (*given, *_USUAL[len(given) - 1 :])
    numbers = [parse_quantity(text, "", place=Place(field="--learn")) for text in texts]
    samples, tokens, chunk, levels = numbers
    question = storage.PatternQuestion(samples, tokens, chunk, int(levels))
    question.check()
    return question


DEFAULT_MODEL = "smollm2-135m"  # Small enough for any machine, so that the modes differ by what they make of it


@click.command()
@options("detect")
@output_options("table", "json", "yaml")
def detect(
    profile_only: bool,
    generate_configs: bool,
    job: str | None,
    learn: str | None,
    benchmark: bool,
    supply: float | None,
    folder: Path | None,
    url: str | None,
    doctor: bool,
    private: bool,
    output: Output,
) -> int:
    """Describe this machine."""
    _refuse_together(click.get_current_context())
    if doctor:
        write_doctor(private, output)
        return 0
    if learn is not None:
        pattern_question(learn)
    report = None
    if benchmark:
        report = measured(folder, url)
        if not (generate_configs or job or supply) or not report.complete:
            return write_benchmark(report, learn, output)
    _write_machine(profile_only, generate_configs, job, learn, report, supply, output)
    return 0


def _refuse_together(context: click.Context) -> None:
    """Refuse options that would be dropped in silence beside others, or without the one they belong to."""
    given = {param.opts[-1]: bool(context.params.get(str(param.name))) for param in context.command.params}
    apart: dict[str, tuple[str, ...]] = {
        "--doctor": ("--profile-only", "--generate-configs", "--job", "--learn", "--benchmark", "--power-supply")
    }
    apart["--profile-only"] = ("--generate-configs", "--job", "--benchmark", "--power-supply")
    for option, others in apart.items():
        conflicts = [other for other in others if given[other]]
        if given[option] and conflicts:
            others_given = " and ".join(conflicts)
            raise click.UsageError(f"{option} leaves out what {others_given} would add: give one or the other")
    for option, whole in {"--folder": "--benchmark", "--url": "--benchmark", "--private": "--doctor"}.items():
        if given[option] and not given[whole]:
            raise click.UsageError(f"{option} does nothing without {whole}")


def _write_machine(
    profile_only: bool,
    generate_configs: bool,
    job: str | None,
    learn: str | None,
    report: benchmarks.BenchmarkReport | None,
    supply: float | None,
    output: Output,
) -> None:
    """Write the facts of this machine; unless they alone are wanted, its score and what a job meets here too."""
    machine = machines.detect()
    answer = None if profile_only else _answer(job, machine, supply)
    comparison = None
    if generate_configs:
        from capacity_tui.tui.cli.plan.search import mode_notes, mode_plans, mode_table

        comparison = modes.compare(_with_supply(solve.open_plan(), supply), machine)
    learning = None if learn is None else forecast_of(learn, machine)
    if output.is_data:
        data: dict[str, object] = machines.machine_as_dict(machine)
        if not profile_only:
            data |= report_data(machine, answer, is_example=job is None)
        if learning:
            data["learning"] = storage_texts.learning_as_dict(learning)
        if report:
            data["benchmark"] = asdict(report)
        if comparison:
            data["configurations"] = {
                entry.mode.id: present.result_as_dict(entry.plan, entry.annotated_estimate)
                for entry in mode_plans(comparison)
            }
        output.data(data)
        return
    from capacity_tui.tui.cli.rich_tables import rich_parts

    lines = [*present.machine_parts(machine)]
    if report:
        lines += present.benchmark_parts(report)
    if answer:
        catalog = catalogs.load_catalog()
        lines += present.score_parts(clusters.score_machine(machine, catalog))
        lines += present.job_parts(machine, answer, catalog, is_example=job is None)
        wide = output.takes_unicode
        lines += present.surroundings_parts(machine, catalog, ascii_only=not wide)
    if learning:
        lines += storage_texts.learning_parts(learning)
    parts: list[RenderableType] = [*rich_parts(lines)]
    if comparison:
        parts += [*mode_table(mode_plans(comparison)), *comparison.remarks, *mode_notes(mode_plans(comparison))]
    output.show(parts)


def _answer(job: str | None, machine: machines.Machine, supply: float | None) -> estimates.Answer:
    """Return the estimate of a plan on this machine, of a small model's training where none is named."""
    from capacity_tui.tui.cli.plan_sources import read_plan

    small = plans.edited(solve.open_plan(), {Key.MODEL_NAME: DEFAULT_MODEL}).plan
    return solve.answer(_with_supply(small if job is None else read_plan(job), supply), machine)


def _with_supply(plan: plans.Plan, supply: float | None) -> plans.Plan:
    """Return a plan with the rating of the machine's power supply, where that is given."""
    return plan if supply is None else plans.edited(plan, {Key.WATCH_SUPPLY_WATTS: supply}).plan


def report_data(machine: machines.Machine, answer: estimates.Answer | None, is_example: bool) -> dict[str, object]:
    """Return all of this as plain data, of a job that may stand for any; see ``job_notes``."""
    data: dict[str, object] = {
        "score": asdict(clusters.score_machine(machine, catalogs.load_catalog())),
        "settings": [asdict(setting) for setting in solve.settings_for(machine)],
        "placement": [asdict(advice) for advice in clusters.placement_advice(machine, catalogs.load_catalog())],
    }
    if answer is None:
        return {**data, "warnings": [_note_data(note) for note in advising.machine_warnings(machine)]}
    suggestions, warnings = advising.job_notes(machine, answer, catalogs.load_catalog(), is_example)
    space = advising.run_space(machine, answer, catalogs.load_catalog())
    power = advising.power_need(machine, catalogs.load_catalog(), answer.plan.watch.supply_watts)
    return {
        **data,
        "disk_space": asdict(space) if space else None,
        "power_draw": {**asdict(power), "drawn_watts": power.drawn_watts, "headroom_watts": power.headroom_watts},
        "cooling": list(machines.cooling_now(machine)),
        "bottleneck": advising.predicted_bottleneck(answer),
        "suggestions": [_note_data(note) for note in suggestions],
        "warnings": [_note_data(note) for note in warnings],
    }


def _note_data(note: estimates.Note) -> dict[str, object]:
    return {"code": note.code, "title": note.title, "detail": note.detail, "saves": dict(note.saves or {})}


def measured(folder: Path | None, url: str | None) -> benchmarks.BenchmarkReport:
    """Run the benchmarks and keep what was measured."""
    if url is not None:
        benchmarks.web_address(url)
    cancelled = threading.Event()
    with interrupted(cancelled):
        report = storage.benchmark_machine(
            machines.detect(), folder=folder, url=url, progress=_tell_progress, cancelled=cancelled
        )
    if report.measured:
        try:
            tell(f"kept in {benchmarks.save_report(report, benchmarks.benchmarks_folder())}")
        except StorageError as error:
            tell(f"not kept: {error.one_line()}")
    return report


def write_benchmark(report: benchmarks.BenchmarkReport, learn: str | None, output: Output) -> int:
    """Write what was measured, the score by it, and what would hold learning up; returns the exit code."""
    machine = machines.detect()
    score = clusters.score_machine(machine, catalogs.load_catalog())
    learning = None if learn is None else forecast_of(learn, machine)
    if output.is_data:
        data = {**asdict(report), "score": asdict(score)}
        output.data(data if learning is None else {**data, "learning": storage_texts.learning_as_dict(learning)})
    else:
        parts = [
            *present.benchmark_parts(report),
            *present.score_parts(score),
            *(storage_texts.learning_parts(learning) if learning else ()),
        ]
        output.parts(parts)
    return 0 if report.complete else 130


def _tell_progress(step: benchmarks.Progress) -> None:
    if step.latest is None:
        tell(f"{step.done + 1}/{step.total} {step.group}")


def write_doctor(private: bool, output: Output) -> None:
    """Detect this machine and write how every probe went, with the catalogue rows that cannot be used."""
    started = time.perf_counter()
    machine = machines.detect()
    report = machines.examine(machine, time.perf_counter() - started, private)
    problems = [problem.one_line() for problem in catalogs.load_catalog().problems]
    if output.is_data:
        output.data({**_data(report), "catalogue_problems": problems})
        return
    lines = [
        *machines.report_lines(report),
        "",
        f"catalogue: {len(problems)} problems",
        *(f"  {line}" for line in problems),
    ]
    output.write("\n".join(lines) + "\n")


def _data(report: machines.DoctorReport) -> dict[str, object]:
    probes = [{**asdict(finding.probe), "returned": list(finding.lines)} for finding in report.findings]
    return {"versions": dict(report.versions), "seconds": report.seconds, "probes": probes}
