"""``search``: the best configurations of a plan over everything that may vary."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for
from capacity_tui.tui.headless.questions import interrupted, question_of

if TYPE_CHECKING:
    from capacity_tui.engine.nodes.search import Shared as SharedAnswer
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve.search import Answer as SearchAnswer
    from capacity_tui.engine.solve.search import Question


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value of the plan first; may be repeated.")  # fmt: skip
@click.option("--vary", multiple=True, metavar="KEY=VALUES", shell_complete=completion.fields,
              help="Values to try of a field: KEY=V1,V2, KEY=LO..HI (doubling, or every whole number), "
              "KEY=LO..HI:STEP, KEY=any; may be repeated. Without it: layout, ZeRO, micro batch, "
              "checkpointing, and what the plan leaves open.")  # fmt: skip
@click.option("--hardware", multiple=True, metavar="NAMES", shell_complete=completion.devices,
              help="Devices or instances to try: ids with commas, a vendor or cloud for all of theirs, "
              "instances for all that are rented, or any for every accelerator.")  # fmt: skip
@click.option("--devices", metavar="LO..HI", help="Numbers of devices to try: doubling, or a list with commas.")
@click.option("--limit", "limits", multiple=True, metavar="FIGURE<=VALUE",
              help="What must hold at the far end of the range: memory<=95%, time<=24h, usd<=200, throughput>=20k; "
              "any figure by its result key; may be repeated.")  # fmt: skip
@click.option("--goal", metavar="FIGURE",
              help="What the best have least or most of: time, usd, throughput, energy or a result key; "
              "by default time, and the largest model where models vary.")  # fmt: skip
@click.option("--top", metavar="N", type=click.IntRange(1, 1000), default=10, show_default=True,
              help="How many of the best.")  # fmt: skip
@click.option("--each", metavar="N", type=click.IntRange(1),
              help="At most so many of each model, device type and number of devices.")  # fmt: skip
@click.option("--pareto", metavar="FIGURE,FIGURE",
              help="Add the front of these figures over everything that was tried.")  # fmt: skip
@click.option("--ray", "address", metavar="ADDRESS",
              help="Share the search out among the workers of a Ray cluster: HOST:PORT, auto, or local:N for N workers "
              "here. The answer is the same; ended half way, the same command goes on from there.")  # fmt: skip
@format_option("table", "json")
@output_option
def search(
    file: str | None,
    flags: PlanFlags,
    settings: tuple[str, ...],
    vary: tuple[str, ...],
    hardware: tuple[str, ...],
    devices: str | None,
    limits: tuple[str, ...],
    goal: str | None,
    top: int,
    each: int | None,
    pareto: str | None,
    address: str | None,
    wanted: str | None,
    output: Path | None,
) -> int:
    """Find the best configurations of a plan: layouts, settings, devices, device types, models.

    PLAN is a plan, an example, a saved plan, - for standard input, or a line in quotes such as
    "llama-3.1-70b lora 8xh100 4k 50M"; without one the flags say the plan. What fits is counted as estimated; limits
    hold at the far end of each figure's range. Ctrl-C stops and shows the best so far.
    """
    from capacity_tui.engine.present import search_as_dict, to_json
    from capacity_tui.engine.solve.search import parse_figures

    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    figures = parse_figures(pareto, plan.task or "train") if pareto else ()
    asked = question_of(plan, vary, hardware, devices, limits, goal)
    question = replace(asked, pareto=figures, top=top, per_kind=each)
    answer = _searched(question, plan, address)
    if (wanted or format_of(output)) == "json":
        write(to_json(search_as_dict(answer)), output)
        return 0
    from capacity_tui.tui.headless.tables.search import search_tables

    write(as_text(search_tables(answer), output is not None), output)
    return 0


def _searched(question: Question, plan: Plan, address: str | None) -> SearchAnswer:
    """Return what a search finds; it is told meanwhile on a terminal, and Ctrl-C ends it with the best so far."""
    from capacity_tui.engine.nodes.search import search_on_ray
    from capacity_tui.engine.solve.search import search as search_space

    told, machine = _tell_progress if sys.stderr.isatty() else None, machine_for(plan)
    with interrupted() as stopped:
        if address is None:
            found = search_space(question, None, machine, told, stopped)
        else:
            shared = search_on_ray(address, question, machine, told, stopped)
            found = shared.answer
    if told is not None:
        sys.stderr.write("\r\x1b[K")
    if address is not None:
        _tell_of_chunks(shared)
    return found


def _tell_of_chunks(shared: SharedAnswer) -> None:
    """Tell what became of the chunks of a search that was shared out."""
    if shared.resumed:
        tell(f"went on from an earlier search: {shared.resumed} of its chunks were done")
    if shared.lost:
        tell(f"workers were lost: {shared.lost} chunks were done again")
    if not shared.answer.complete:
        tell("stopped; what is done is kept, the same command goes on from there")


def _tell_progress(answer: SearchAnswer) -> None:
    from capacity_tui.engine.present import progress_text

    sys.stderr.write(f"\r\x1b[K{progress_text(answer)}")
    sys.stderr.flush()
