"""``plan``: estimates of plans, and where a figure of theirs comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.schema import REPORT_FORMATS
from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.comparing import beside, called, comparison
from capacity_tui.tui.headless.framework_folder import write_framework_files
from capacity_tui.tui.headless.kept import history_option, keep_estimates
from capacity_tui.tui.headless.output import (
    as_text,
    format_of,
    format_option,
    output_option,
    tell,
    write,
)
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.explain import Roofline
    from capacity_tui.engine.machine import Machine
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.plan.files import PlanSource
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.present import Report

BOTTLENECK, PLACEMENT = "bottleneck", "placement"
EXPLAINED_FORMS = ("table", "json", "yaml")
PICTURE_WIDTH = 72
DOES_NOT_FIT = 1
_IN_FULL = ("report.detailed_breakdown=true", "report.include_plots=true", "report.include_recommendations=true")
_files = click.argument("files", nargs=-1, metavar="FILE...", type=click.Path())


@click.command()
@_files
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value, such as training.micro_batch=4; may be repeated.")  # fmt: skip
@click.option("--check", is_flag=True, help="Exit with 1 if a plan does not fit, or misses a limit that it sets.")
@click.option(
    "--explain",
    "key",
    metavar="KEY",
    help="Show how one figure came about, such as memory.parts.activations; follow what was put into it with /NAME, "
    "as in cost.usd/step_seconds; memory, computation and bottleneck draw what happens when, and the roofline; "
    "placement which parallel dimension lies on which level of the cluster.",
)
@click.option(
    "--frameworks",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the files that the plan's framework or engine reads to a folder.",
)
@click.option("--force", is_flag=True, help="Replace files that are there; with --frameworks.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show every part and the basis, and draw memory, time and roofline.",
)
@click.option("--compare", is_flag=True, help="Show several plans side by side, or one on several --gpu.")
@history_option
@format_option(*REPORT_FORMATS)
@output_option
def plan(
    files: tuple[str, ...],
    flags: PlanFlags,
    settings: tuple[str, ...],
    check: bool,
    verbose: bool,
    compare: bool,
    key: str | None,
    folder: Path | None,
    force: bool,
    no_history: bool,
    wanted: str | None,
    output: Path | None,
    gpus: tuple[str, ...] = (),
) -> int:
    """Estimate plans: memory, time, cost, and what limits them.

    FILE is a plan, the name of an example or of a saved plan, - for standard input, or a line in quotes such as
    "llama-3.1-70b lora 8xh100 4k 50M". Several give one JSON object a line, or stand side by side with --compare.
    Without one the flags say the plan.
    """
    page = next((form for form in (wanted, format_of(output)) if form and REPORT_FORMATS[form].is_page), None)
    names = sources_of(files, flags)
    settings = (*settings, *(_IN_FULL if verbose else ()))
    if compare and (key is not None or folder is not None):
        raise click.UsageError("--compare shows figures side by side: leave out --explain and --frameworks")
    if page and len(files) > 1 and not compare:
        raise click.UsageError(f"{page} is one page for one plan: name one FILE")
    if folder is not None and (len(files) > 1 or key is not None):
        raise click.UsageError("--frameworks is one folder for one plan: name one FILE, without --explain")
    form = wanted or format_of(output)
    if key is not None and form not in (None, *EXPLAINED_FORMS):
        raise click.UsageError(f"--explain tells one figure: its --format is {' or '.join(EXPLAINED_FORMS)}")
    texts: list[str] = []
    codes = [0]
    found: list[tuple[str, Answer]] = []
    estimated: list[Answer] = []
    for name, said in ((name, said) for name in names for said in _on_each(flags, gpus)):
        source = None
        try:
            source = source_of(name, said)
            loaded = changed_plan(source.plan(), settings)
            if key is not None:
                texts.append(_explained(loaded, key, form, output))
                continue
            answer = _with_assumed(_estimated(loaded), source, settings)
            estimated.append(answer)
            if folder is not None:
                write_framework_files(answer.plan, folder, force, machine_for(loaded))
        except CapacityError as error:
            tell(
                f"capacity-tui: {(source.placed(error) if source else error).one_line()}{_further(source, name or '')}"
            )
            codes.append(error.exit_code)
            continue
        if compare:
            own = called(name, said.gpu, len(names) > 1, len(gpus) > 1)
            found += [(own, answer), *beside(own, loaded, _estimated, len(names) > 1)]
        else:
            shape = wanted or _default_format(files, output, answer)
            pictures = _pictures(answer) if verbose and not REPORT_FORMATS[shape].writer else ()
            of = _reported(answer, len(files) > 1, source.not_understood)
            texts.append(_report(of, shape, output, in_full=verbose or output is not None))
            texts += (_drawn(answer, group, output) for group in pictures)
        is_short = not answer.estimate.fits
        codes.append(DOES_NOT_FIT if check and is_short else 0)
    if compare and max(codes) <= DOES_NOT_FIT:
        texts.append(comparison(found, wanted, output))
    if texts:
        write("".join(texts), output, files)
    keep_estimates(estimated, no_history)
    return max(codes)


def _on_each(flags: PlanFlags, gpus: tuple[str, ...]) -> tuple[PlanFlags, ...]:
    """Return the flags with each of several devices; as they are where there is but one."""
    return tuple(replace(flags, gpu=gpu) for gpu in gpus) or (flags,)


def _further(source: PlanSource | None, name: str) -> str:
    """Return how many more faults a plan's file has; empty where the one that was told is all."""
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.solve import faults as plan_faults

    more = len(plan_faults(source, load_catalog(), machine_for)) - 1 if source else 0
    return f"; and {more} more: capacity-tui validate {name}" if more > 0 else ""


def read_plan(name: str) -> Plan:
    """Return the plan of a file, an example, a line or standard input.

    Raises:
        CapacityError: it cannot be read, or is not a plan.
    """
    from capacity_tui.engine.plan.line import PlanFlags

    return source_of(name, PlanFlags()).plan()


def changed_plan(plan: Plan, settings: tuple[str, ...]) -> Plan:
    """Return a plan with what settings change.

    Raises:
        PlanError: a setting that makes no sense.
    """
    from capacity_tui.engine.plan.files import apply_settings

    if not settings:
        return plan
    changed = apply_settings(plan, settings)
    for follower in changed.followed:
        tell(f"capacity-tui: also changed: {follower.words}")
    return changed.plan


def machine_for(plan: Plan) -> Machine | None:
    """Return this machine if the plan runs on what is detected, else None."""
    if plan.hardware.name != "detected":
        return None
    from capacity_tui.engine.machine import detect

    return detect()


def _estimated(plan: Plan) -> Answer:
    from capacity_tui.engine.solve import answer

    return answer(plan, machine_for(plan))


def _explained(plan: Plan, key: str, form: str | None, output: Path | None) -> str:
    from capacity_tui.engine.present import explain_along, explanation_as_dict, to_json, to_yaml
    from capacity_tui.engine.present.pictures import PICTURES
    from capacity_tui.tui.headless.tables.explanation import explanation_tables

    if key == PLACEMENT:
        return _placed(plan, form, output)
    if form in ("json", "yaml"):
        data = explanation_as_dict(explain_along(plan, key, machine_for(plan)))
        return to_json(data) if form == "json" else to_yaml(data)
    if key in PICTURES:
        return _drawn(_estimated(plan), key, output)
    return as_text(explanation_tables(explain_along(plan, key, machine_for(plan))), output is not None)


def _placed(plan: Plan, form: str | None, output: Path | None) -> str:
    """Return where a plan lies on its cluster."""
    from capacity_tui.engine.present import placement_as_dict, placement_parts, to_json, to_yaml
    from capacity_tui.engine.solve import place_plan
    from capacity_tui.tui.headless.tables.layout import rich_parts

    found = place_plan(plan, machine_for(plan))
    if form in ("json", "yaml"):
        data = placement_as_dict(found)
        return to_json(data) if form == "json" else to_yaml(data)
    return as_text(rich_parts(placement_parts(found)), output is not None)


def _pictures(answer: Answer) -> Iterator[str]:
    """Yield the groups of figures of which there is a picture."""
    from capacity_tui.engine.present.pictures import PICTURES, picture_of

    return (group for group in PICTURES if picture_of(group, answer) is not None)


def _drawn(answer: Answer, group: str, output: Path | None) -> str:
    """Return the picture behind a group of figures; the roofline with what limits the run."""
    from capacity_tui.engine.errors import PlanError
    from capacity_tui.engine.present.pictures import picture_lines, picture_of
    from capacity_tui.tui.headless.tables.explanation import limit_line

    drawn = picture_of(group, answer)
    if drawn is None:
        raise PlanError("no roofline", "nothing is known of this model's kernels", "explain bottleneck.ridge_point")
    to_file = output is not None
    ascii_only = not to_file and "utf" not in (sys.stdout.encoding or "").lower()
    lines = "".join(f"{line}\n" for line in picture_lines(drawn, PICTURE_WIDTH, ascii_only))
    return lines + as_text(limit_line(answer), to_file) if group == BOTTLENECK else lines


def _roofline(answer: Answer) -> Roofline | None:
    from capacity_tui.engine.explain import roofline

    return roofline(answer)


def _default_format(files: tuple[str, ...], output: Path | None, answer: Answer) -> str:
    if len(files) > 1:
        return format_of(output) or "json"
    if output is None:
        return "table"
    form = answer.plan.report.format
    return format_of(output) or form


def _with_assumed(answer: Answer, source: PlanSource, settings: tuple[str, ...]) -> Answer:
    """Return an answer with what was assumed of a line; what settings give is not."""
    from capacity_tui.engine.estimate import with_assumed

    given = {setting.partition("=")[0] for setting in settings}
    left = [entry for entry in source.assumed if entry.key not in given]
    return replace(answer, estimate=with_assumed(answer.estimate, answer.plan, left))


def _reported(answer: Answer, many: bool, not_understood: tuple[str, ...]) -> Report:
    from capacity_tui.engine.present import Report

    return Report(answer, _roofline, many, not_understood)


def _report(of: Report, form: str, output: Path | None, *, in_full: bool) -> str:
    from capacity_tui.engine.present import write_report

    if REPORT_FORMATS[form].writer:
        return write_report(form, of)
    from capacity_tui.tui.headless.tables.answer import answer_tables

    return as_text(answer_tables(of.answer.plan, of.answer.estimate, in_full=in_full), output is not None)
