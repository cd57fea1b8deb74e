"""``plan``: estimates of plans, and where a figure of theirs comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import click

from capacity_tui.engine import catalog as catalogs
from capacity_tui.engine import estimate as estimates
from capacity_tui.engine import explain, present, solve
from capacity_tui.engine import plan as plans
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import files as plan_files
from capacity_tui.engine.plan import line as plan_lines
from capacity_tui.engine.present import pictures
from capacity_tui.engine.schema import REPORT_FORMATS
from capacity_tui.engine.solve import need as needs
from capacity_tui.tui.cli.options import keep_estimates, options, output_options
from capacity_tui.tui.cli.output import Output, progress, tell
from capacity_tui.tui.cli.plan_sources import (
    changed_plan,
    compared_lines,
    machine_for,
    plan_flags,
    source_of,
    sources_of,
)

BOTTLENECK, PLACEMENT = "bottleneck", "placement"
EXPLAINED_FORMS = ("table", "json", "yaml")
SOLVED_FORMS = (None, *EXPLAINED_FORMS)
"""Forms in which the answer to what a line asks is written; others have the plan that it comes to."""

PICTURE_WIDTH = 72
DOES_NOT_FIT = 1
_IN_FULL = tuple(
    f"{key}=true"
    for key in (Key.REPORT_DETAILED_BREAKDOWN, Key.REPORT_INCLUDE_PLOTS, Key.REPORT_INCLUDE_RECOMMENDATIONS)
)
_files = click.argument("files", nargs=-1, metavar="FILE...", type=click.Path())


@click.command()
@_files
@plan_flags
@options("plan")
@output_options(*REPORT_FORMATS)
def plan(
    files: tuple[str, ...],
    flags: plan_lines.PlanFlags,
    settings: tuple[str, ...],
    check: bool,
    verbose: bool,
    brief: bool | None,
    scaling: bool,
    compare: bool,
    key: str | None,
    folder: Path | None,
    force: bool,
    no_history: bool,
    output: Output,
    gpus: tuple[str, ...] = (),
) -> int:
    """Estimate plans: memory, time, cost, and what limits them.

    FILE is a plan, the name of an example or of a saved plan, - for standard input, or a line in quotes such as
    "llama-3.1-70b lora 8xh100 4k 50M". Several give one JSON object a line, or stand side by side with --compare.
    Without one the flags say the plan.
    """
    labels = compared_lines(files[0]) if len(files) == 1 else {}
    names, compare = tuple(labels) or sources_of(files, flags), compare or len(labels) > 1
    form = output.form
    settings = (*settings, *(_IN_FULL if verbose else ()), *((f"{Key.SCALABILITY_ENABLED}=true",) if scaling else ()))
    _refuse_contradictions(files, output, key, folder, compare=compare, brief=brief, verbose=verbose or scaling)
    texts: list[str] = []
    codes = [0]
    columns: list[tuple[str, estimates.Answer]] = []
    estimated: list[estimates.Answer] = []
    for name, variant in product(names, [replace(flags, gpu=gpu) for gpu in gpus] or [flags]):
        source = None
        try:
            source = source_of(name, variant)
            loaded = changed_plan(source.plan(), settings)
            if source.asked is not None:
                needed = _needed(loaded, source.asked)
                if needed.best is None or (not (key or folder or compare) and form in SOLVED_FORMS):
                    from capacity_tui.tui.cli.plan.search import needed_text

                    texts.append(needed_text(needed, machine_for(loaded), output))
                    codes.append(DOES_NOT_FIT if needed.best is None else 0)
                    continue
                loaded = needed.best.plan or loaded
            if key is not None:
                texts.append(_explained(loaded, key, output))
                continue
            answer = _of_source(_estimated(loaded), source, settings)
            estimated.append(answer)
            if folder is not None:
                from capacity_tui.tui.cli.plan.search import write_framework_files

                write_framework_files(answer.plan, folder, force, machine_for(loaded))
        except CapacityError as error:
            tell(
                f"capacity-tui: {(source.placed(error) if source else error).one_line()}{_further(source, name or '')}"
            )
            codes.append(error.exit_code)
            continue
        if compare:
            label = labels.get(name or "") or called(name, variant.gpu, len(names) > 1, len(gpus) > 1)
            columns += [(label, answer), *scenarios_of(label, loaded, _estimated, len(names) > 1)]
        else:
            shape = output.form or _default_form(len(files) > 1, output, answer)
            pictures = _pictures(answer) if verbose and REPORT_FORMATS[shape].is_drawn else ()
            of = present.Report(answer, explain.roofline, len(files) > 1, source.not_understood)
            is_brief = output.is_on_short_terminal and not (verbose or scaling) if brief is None else brief
            texts.append(_report(of, shape, output, in_full=verbose or output.is_file, is_brief=is_brief))
            texts += (_drawn(answer, group, output) for group in pictures)
        codes.append(DOES_NOT_FIT if check and not answer.estimate.fits else 0)
    if compare and max(codes) <= DOES_NOT_FIT:
        texts.append(comparison(columns, output))
    if texts:
        output.write("".join(texts), files)
    keep_estimates(estimated, no_history)
    return max(codes)


def _refuse_contradictions(
    files: tuple[str, ...],
    output: Output,
    key: str | None,
    folder: Path | None,
    *,
    compare: bool,
    brief: bool | None,
    verbose: bool,
) -> None:
    """Raise UsageError where options do not go together."""
    form = output.form
    page = form if form and REPORT_FORMATS[form].is_page else None
    if compare and (key is not None or folder is not None):
        raise click.UsageError("--compare shows figures side by side: leave out --explain and --frameworks")
    if page and len(files) > 1 and not compare:
        raise click.UsageError(f"{page} is one page for one plan: name one FILE")
    if folder is not None and (len(files) > 1 or key is not None):
        raise click.UsageError("--frameworks is one folder for one plan: name one FILE, without --explain")
    if brief and (verbose or compare or key is not None or not REPORT_FORMATS[form or "table"].is_drawn):
        raise click.UsageError(
            "--brief shortens the table of one plan: leave out -v, --scaling, --explain, --format and --compare, "
            "which a line that compares plans stands for"
        )
    if key is not None and form not in (None, *EXPLAINED_FORMS):
        raise click.UsageError(f"--explain tells one figure: its --format is {' or '.join(EXPLAINED_FORMS)}")


def _further(source: plan_files.PlanSource | None, name: str) -> str:
    """Return how many more faults a plan's file has; empty where the one that was reported is all."""
    more = len(solve.faults(source, catalogs.load_catalog(), machine_for)) - 1 if source else 0
    return f"; and {more} more: capacity-tui validate {name}" if more > 0 else ""


def _estimated(plan: plans.Plan) -> estimates.Answer:
    with progress("estimating"):
        return solve.answer(plan, machine_for(plan))


def _needed(plan: plans.Plan, asked: plan_lines.Asked) -> needs.Needed:
    from capacity_tui.tui.cli.plan.search import shown_while_solved

    limits = "".join(f", {limit}" for limit in asked.limits)
    tell(f"capacity-tui: asked: {asked.solve}{limits} ({asked.why})")
    machine = machine_for(plan)
    return shown_while_solved(
        lambda show, stopped: needs.answer_line_question(plan, asked, machine, callback=show, stopped=stopped)
    )


def _explained(plan: plans.Plan, key: str, output: Output) -> str:
    if key == PLACEMENT:
        return _placed(plan, output)
    if output.is_data:
        return output.data_text(present.explanation_as_dict(present.explain_along(plan, key, machine_for(plan))))
    if key in pictures.PICTURES:
        return _drawn(_estimated(plan), key, output)
    return output.parts_text(present.explanation_parts(present.explain_along(plan, key, machine_for(plan))))


def _placed(plan: plans.Plan, output: Output) -> str:
    placement = solve.place_plan(plan, machine_for(plan))
    if output.is_data:
        return output.data_text(present.placement_as_dict(placement))
    return output.parts_text(present.placement_parts(placement))


def _pictures(answer: estimates.Answer) -> Iterator[str]:
    """Yield the groups of figures of which there is a picture."""
    return (group for group in pictures.PICTURES if pictures.picture_of(group, answer) is not None)


def _drawn(answer: estimates.Answer, group: str, output: Output) -> str:
    """Return the picture behind a group of figures; the roofline with what limits the run."""
    drawn = pictures.picture_of(group, answer)
    if drawn is None:
        raise PlanError(
            "no roofline", "nothing is known of this model's kernels", f"explain {Figure.BOTTLENECK_RIDGE_POINT}"
        )
    lines = "".join(f"{line}\n" for line in pictures.picture_lines(drawn, PICTURE_WIDTH, not output.takes_unicode))
    chart = explain.roofline(answer) if group == BOTTLENECK else None
    if chart is None:
        return lines
    return lines + output.parts_text([present.TextPart(pictures.limit_text(chart, answer.estimate), "strong")])


def _default_form(several: bool, output: Output, answer: estimates.Answer) -> str:
    if several:
        return "json"
    return answer.plan.report.format if output.is_file else "table"


def _of_source(answer: estimates.Answer, source: plan_files.PlanSource, settings: tuple[str, ...]) -> estimates.Answer:
    """Return an answer with what was assumed of a line, but for what settings give."""
    given = {setting.partition("=")[0] for setting in settings}
    left = [entry for entry in source.assumed if entry.key not in given]
    return replace(answer, estimate=estimates.with_assumed(answer.estimate, answer.plan, left))


def _report(of: present.Report, form: str, output: Output, *, in_full: bool, is_brief: bool) -> str:
    if not REPORT_FORMATS[form].is_drawn:
        return present.write_report(form, of)
    if is_brief:
        return output.parts_text(present.brief_parts(of.answer.plan, of.answer.estimate))
    return output.parts_text(present.answer_parts(of.answer.plan, of.answer.estimate, in_full=in_full))


def comparison(entries: Sequence[tuple[str, estimates.Answer]], output: Output) -> str:
    """Return answers side by side, in the form that is wanted."""
    if len(entries) < 2:
        raise click.UsageError("--compare needs two plans: name two FILEs, give --gpu twice, or pin plans beside one")
    columns = present.side_by_side(present.Named(name, answer) for name, answer in _numbered(entries))
    form = output.form or "table"
    if not REPORT_FORMATS[form].is_drawn:
        return present.write_comparison(form, columns)
    return output.parts_text(present.comparison_parts(columns))


def called(file: str | None, gpu: str | None, one_of_many: bool, has_gpus: bool) -> str:
    """Return what a plan is called beside others."""
    name = "-" if file == "-" else Path(file).stem if file and Path(file).suffix in (".yaml", ".yml", ".json") else file
    parts = (name if one_of_many or not has_gpus else None, gpu if has_gpus or name is None else None)
    return ", ".join(part for part in parts if part) or "the flags"


def scenarios_of(
    label: str, plan: plans.Plan, estimated: Callable[[plans.Plan], estimates.Answer], one_of_many: bool
) -> Iterator[tuple[str, estimates.Answer]]:
    """Yield the plans that a plan's file has beside it, with what they are called.

    Args:
        label: what the plan itself is called.
        one_of_many: whether there are other files.
    """
    for name, scenario in plan.scenarios.items():
        yield f"{label}, {name}" if one_of_many else name, estimated(scenario)


def _numbered(entries: Sequence[tuple[str, estimates.Answer]]) -> list[tuple[str, estimates.Answer]]:
    """Return the entries, those of one name with numbers behind it."""
    count = Counter(name for name, _ in entries)
    seen: Counter[str] = Counter()
    numbered = []
    for name, answer in entries:
        seen[name] += 1
        numbered.append((f"{name} ({seen[name]})" if count[name] > 1 else name, answer))
    return numbered
