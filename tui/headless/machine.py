"""``detect`` and ``configs``: what this machine is, and what to run on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.keys import Key
from capacity_tui.tui.headless.learning import asked_of, forecast_of, learn_option
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.machine.benchmark import BenchmarkReport
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve.modes import Comparison, ModePlan

DEFAULT_MODEL = "smollm2-135m"
"""Small enough for any machine, so that the modes differ by what they make of it."""
MODE_NAMES = ("conservative", "balanced", "extreme")


@click.command()
@click.option("--profile-only", is_flag=True, help="Say what the machine is, and no more.")
@click.option("--generate-configs", is_flag=True, help="Propose three configurations for it too.")
@click.option("--job", metavar="FILE", help="Say what limits this plan here, instead of a small model's training.")
@learn_option
@click.option(
    "--benchmark", is_flag=True, help="Measure memory, processor, GPUs, disk, latencies and a database (about 10 s)."
)
@click.option(
    "--power-supply",
    "supply",
    metavar="WATTS",
    type=click.FloatRange(50, 1e6),
    help="What its power supply is rated for, to say what is left of it.",
)
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
    help="Disk to measure; with --benchmark.",
)
@click.option("--url", metavar="URL", help="Web address to measure the network to; with --benchmark.")
@click.option("--doctor", is_flag=True, help="Write a report for bug reports: every probe and what it returned.")
@click.option("--private", is_flag=True, help="Keep serial numbers, host and user names; with --doctor.")
@format_option("table", "json", "yaml")
@output_option
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
    wanted: str | None,
    output: Path | None,
) -> int:
    """Say what this machine is."""
    _refuse_together({
        "--doctor": doctor, "--profile-only": profile_only, "--generate-configs": generate_configs, "--job": bool(job),
        "--learn": bool(learn),
        "--benchmark": benchmark, "--power-supply": supply is not None,
        "--folder": bool(folder), "--url": bool(url), "--private": private,
    })  # fmt: skip
    if doctor:
        from capacity_tui.tui.headless.doctor import write_doctor

        write_doctor(private, wanted, output)
        return 0
    if learn is not None:
        asked_of(learn)
    report = None
    if benchmark:
        from capacity_tui.tui.headless.benchmark import measured, write_benchmark

        report = measured(folder, url)
        if not (generate_configs or job or supply) or not report.complete:
            return write_benchmark(report, learn, wanted, output)
    _write_machine(profile_only, generate_configs, job, learn, report, supply, wanted, output)
    return 0


def _refuse_together(given: Mapping[str, bool]) -> None:
    """Refuse options that would be dropped in silence beside others, or without the one they belong to."""
    apart: dict[str, tuple[str, ...]] = {
        "--doctor": ("--profile-only", "--generate-configs", "--job", "--learn", "--benchmark", "--power-supply")
    }
    apart["--profile-only"] = ("--generate-configs", "--job", "--benchmark", "--power-supply")
    for option, others in apart.items():
        beside = [other for other in others if given[other]]
        if given[option] and beside:
            raise click.UsageError(f"{option} leaves out what {' and '.join(beside)} would add: give one or the other")
    for option, whole in {"--folder": "--benchmark", "--url": "--benchmark", "--private": "--doctor"}.items():
        if given[option] and not given[whole]:
            raise click.UsageError(f"{option} does nothing without {whole}")


def _write_machine(
    profile_only: bool,
    generate_configs: bool,
    job: str | None,
    learn: str | None,
    report: BenchmarkReport | None,
    supply: float | None,
    wanted: str | None,
    output: Path | None,
) -> None:
    """Write the facts of this machine; unless they alone are wanted, its score and what a job meets here too."""
    from capacity_tui.engine.machine import detect as look
    from capacity_tui.engine.machine import machine_as_dict
    from capacity_tui.tui.headless import machine_report

    machine = look()
    found = None if profile_only else _answer(job, machine, supply)
    comparison = None
    if generate_configs:
        from capacity_tui.engine.solve import open_plan
        from capacity_tui.engine.solve.modes import compare

        comparison = compare(_with_supply(open_plan(), supply), machine)
    learning = None if learn is None else forecast_of(learn, machine)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        from capacity_tui.engine.present import result_as_dict, to_json, to_yaml

        data: dict[str, object] = machine_as_dict(machine)
        if not profile_only:
            data |= machine_report.report_data(machine, found, is_example=job is None)
        if learning:
            from capacity_tui.engine.present.storage import learning_as_dict

            data["learning"] = learning_as_dict(learning)
        if report:
            data["benchmark"] = asdict(report)
        if comparison:
            data["configurations"] = {
                entry.mode.id: result_as_dict(entry.plan, entry.annotated_estimate) for entry in _entries(comparison)
            }
        write(to_json(data) if form == "json" else to_yaml(data), output)
        return
    from capacity_tui.engine.present import machine_parts
    from capacity_tui.tui.headless.tables.layout import rich_parts

    said = [*machine_parts(machine)]
    if report:
        from capacity_tui.engine.present import benchmark_parts

        said += benchmark_parts(report)
    if found:
        from capacity_tui.engine.catalog import load_catalog
        from capacity_tui.engine.cluster import score_machine
        from capacity_tui.engine.present import job_parts, score_parts, surroundings_parts

        catalog = load_catalog()
        said += score_parts(score_machine(machine, catalog))
        said += job_parts(machine, found, catalog, is_example=job is None)
        wide = output is not None or "utf" in (sys.stdout.encoding or "").lower()
        said += surroundings_parts(machine, catalog, ascii_only=not wide)
    if learning:
        from capacity_tui.engine.present.storage import learning_parts

        said += learning_parts(learning)
    parts: list[RenderableType] = [*rich_parts(said)]
    if comparison:
        parts += [*_compared(_entries(comparison)), *comparison.remarks, *_told_of(_entries(comparison))]
    write(as_text(parts, output is not None), output)


@click.command()
@click.argument("file", required=False, metavar="[FILE]", type=click.Path())
@plan_flags
@click.option("--mode", type=click.Choice(MODE_NAMES), help="Only this one.")
@click.option(
    "-o", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Write plan files and framework files."
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@format_option("table", "json", "yaml")
def configs(
    file: str | None, flags: PlanFlags, mode: str | None, folder: Path | None, force: bool, wanted: str | None
) -> None:
    """Propose conservative, balanced and extreme configurations, as plan files; of a plan, or of what the flags say."""
    from capacity_tui.engine.machine import detect as look
    from capacity_tui.engine.solve.modes import compare
    from capacity_tui.tui.headless.machine_report import settings_comment, settings_data

    plan = _open_plan(file, flags)
    machine = look() if plan.hardware.name == "detected" else None
    comparison = compare(plan, machine)
    chosen = [entry for entry in _entries(comparison) if mode in (None, entry.mode.id)]
    if folder is not None:
        _write_plans(chosen, folder, force, machine)
        return
    if wanted == "yaml":
        from capacity_tui.engine.plan.files import dump_plan

        texts = [dump_plan(entry.plan, _comment(entry, machine)) for entry in chosen]
        write("---\n".join(texts), None)
    elif wanted == "json":
        from capacity_tui.engine.present import result_as_dict, to_json

        results: dict[str, object] = {
            entry.mode.id: {
                **result_as_dict(entry.plan, entry.annotated_estimate),
                "settings": settings_data(entry, machine),
            }
            for entry in chosen
        }
        write(to_json(results), None)
    else:
        remarks = () if mode else comparison.remarks
        settings = settings_comment(chosen[0], machine)
        write(as_text([*_compared(chosen), *remarks, *_told_of(chosen), *settings]), None)


def _open_plan(file: str | None, flags: PlanFlags) -> Plan:
    """Return a plan, or what the flags say; what they leave open each mode chooses, the model too."""
    from capacity_tui.engine.plan.line import line_of_flags
    from capacity_tui.engine.solve import changed_by_line, open_plan

    if file is not None:
        return source_of(file, flags).plan()
    line = line_of_flags(flags)
    return changed_by_line(open_plan(line.task), line)


def _answer(job: str | None, machine: Machine, supply: float | None) -> Answer:
    """Return the estimate of a plan on this machine, of a small model's training where none is named."""
    from capacity_tui.engine.plan import edited
    from capacity_tui.engine.solve import answer, open_plan
    from capacity_tui.tui.headless.plans import read_plan

    small = edited(open_plan(), {Key.MODEL_NAME: DEFAULT_MODEL}).plan
    return answer(_with_supply(small if job is None else read_plan(job), supply), machine)


def _with_supply(plan: Plan, supply: float | None) -> Plan:
    """Return a plan with the rating of the machine's power supply, where that is given."""
    from capacity_tui.engine.plan import edited

    return plan if supply is None else edited(plan, {Key.WATCH_SUPPLY_WATTS: supply}).plan


def _entries(comparison: Comparison) -> tuple[ModePlan, ...]:
    return (comparison.conservative, comparison.balanced, comparison.extreme)


def _compared(entries: Sequence[ModePlan]) -> Iterator[RenderableType]:
    """Yield the configurations side by side."""
    from capacity_tui.tui.headless.tables.comparison import comparison_table

    yield comparison_table([(entry.mode.id, entry.plan, entry.estimate) for entry in entries])


def _told_of(entries: Sequence[ModePlan]) -> Iterator[str]:
    """Yield what each mode is, what its configuration uses of its shares, and what it warns of."""
    for entry in entries:
        yield from _mode_lines(entry)
    for entry in entries:
        yield from (f"{entry.mode.id}: {text}" for text in _warning_lines(entry))


def _mode_lines(entry: ModePlan) -> list[str]:
    """Return what a mode is, and how much of its shares its configuration uses."""
    told = entry.filled_by
    if told is None:
        return []
    details = (*(share.words for share in told.shares), told.reserve, *told.outside)
    return [told.line, *(f"  {text}" for text in details if text)]


def _warning_lines(entry: ModePlan) -> list[str]:
    from capacity_tui.engine.present import note_text

    return [note_text(note) for note in entry.annotated_estimate.warnings]


def _comment(entry: ModePlan, machine: Machine | None) -> str:
    from capacity_tui.tui.headless.machine_report import settings_comment

    reasons = [f"{field}: {reason}" for field, reason in {**entry.reasons, **entry.running}.items()]
    warnings = [f"Warning: {text}" for text in _warning_lines(entry)]
    return "\n".join([f"Configuration {entry.mode.id}.", *reasons, *warnings, *settings_comment(entry, machine)])


def _write_plans(entries: list[ModePlan], folder: Path, force: bool, machine: Machine | None) -> None:
    from capacity_tui.engine.files import make_folder, write_atomically
    from capacity_tui.engine.plan.files import dump_plan
    from capacity_tui.tui.headless.framework_folder import write_framework_files

    make_folder(folder)
    for entry in entries:
        path = folder / f"{entry.mode.id}.yaml"
        write_atomically(path, dump_plan(entry.plan, _comment(entry, machine)), overwrite=force)
        tell(f"wrote {path}")
        write_framework_files(entry.plan, folder / entry.mode.id, force, machine)
