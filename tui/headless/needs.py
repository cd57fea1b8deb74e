"""``need``: which value of one field keeps the limits."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for
from capacity_tui.tui.headless.questions import interrupted, question_of

if TYPE_CHECKING:
    from capacity_tui.engine.estimate import Answer
    from capacity_tui.engine.plan.line import PlanFlags
    from capacity_tui.engine.solve import Candidate
    from capacity_tui.engine.solve.need import Needed

NO_ANSWER = 1
_EVERY = 0.1
"""Seconds between two lines of progress."""


@click.command()
@click.argument("name", metavar="[PLAN]", required=False, type=click.Path())
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value first; may be repeated.")  # fmt: skip
@click.option("--solve", required=True, metavar="KEY", shell_complete=completion.names_of_fields,
              help="The field that is asked for, such as hardware.devices, or model.parameters.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="FIGURE<=VALUE",
              help="What must hold at the far end of a figure's range, such as 'time<=24h', 'usd<=200', 'memory<=95%' "
                   "or 'ttft<=2s'; may be repeated.")  # fmt: skip
@click.option("--goal", metavar="FIGURE", help="What decides between values that keep the limits, such as usd or time.")
@click.option("--vary", multiple=True, metavar="KEY=V1,V2", shell_complete=completion.fields,
              help="What else may change with the value: KEY=V1,V2, KEY=LO..HI or KEY=LO..HI:STEP.")  # fmt: skip
@click.option("--hardware", multiple=True, metavar="NAMES", shell_complete=completion.devices,
              help="Devices or instances that may be used: ids with commas, a vendor or cloud for all of theirs, "
                   "instances for all that are rented, or any for every accelerator.")  # fmt: skip
@click.option("--devices", metavar="LO..HI", help="Numbers of devices that may be used: doubling, or with commas.")
@format_option("table", "json", "yaml")
@output_option
def need(
    name: str | None,
    flags: PlanFlags,
    settings: tuple[str, ...],
    solve: str,
    limits: tuple[str, ...],
    goal: str | None,
    vary: tuple[str, ...],
    hardware: tuple[str, ...],
    devices: str | None,
    wanted: str | None,
    output: Path | None,
) -> int:
    """Solve a plan for one of its fields: everything else is as the plan says, and the limits decide.

    Which GPUs, how many of them, how long a sequence, how large a model: a number goes as far as the limits let it,
    of names the best by the goal is taken. What the plan leaves open is chosen anew for each value. Exit code 1 where
    no value keeps the limits; then the nearest is told, and what to relax. Ctrl-C stops and shows the best so far.
    """
    from capacity_tui.engine.present import needed_as_dict, to_json, to_yaml
    from capacity_tui.engine.solve import answer as answered
    from capacity_tui.engine.solve.need import need as solved

    (source,) = (source_of(each, flags) for each in sources_of((name,) if name else (), flags))
    plan = changed_plan(source.plan(), settings)
    question = question_of(plan, vary, hardware, devices, limits, goal)
    machine = machine_for(plan)
    progress = _Progress()
    try:
        with interrupted() as stopped:
            needed = solved(question, solve, machine, callback=progress.told, stopped=stopped)
    finally:
        progress.clear()
    found = needed.best.plan if needed.best is not None else None
    answer = None if found is None else answered(found, machine)
    form = wanted or format_of(output) or "table"
    if form == "json":
        text = to_json(needed_as_dict(needed, answer))
    elif form == "yaml":
        text = to_yaml(needed_as_dict(needed, answer))
    else:
        text = _table(needed, answer, output is not None)
    write(text, output, (name,) if name else ())
    return NO_ANSWER if needed.best is None else 0


class _Progress:
    """One line of what is being tried, on stderr, where somebody looks at it."""

    def __init__(self) -> None:
        self.tried = 0
        self.shown = monotonic()
        self.is_seen = sys.stderr.isatty()

    def told(self, tried: Candidate) -> None:
        """Count a value that was tried, and say so from time to time."""
        self.tried += 1
        if self.is_seen and monotonic() - self.shown >= _EVERY:
            self.shown = monotonic()
            state = "holds" if tried.holds else "does not hold"
            click.echo(
                f"\r\x1b[Ktried {self.tried}: {', '.join(map(str, tried.change.values()))} {state}"[:79],
                err=True,
                nl=False,
            )

    def clear(self) -> None:
        """Take the line away."""
        if self.is_seen:
            click.echo("\r\x1b[K", err=True, nl=False)


def _table(needed: Needed, answer: Answer | None, to_file: bool) -> str:
    from capacity_tui.engine.present import needed_parts
    from capacity_tui.tui.headless.tables.answer import answer_tables
    from capacity_tui.tui.headless.tables.layout import rich_parts

    parts = list(rich_parts(needed_parts(needed)))
    if answer is not None:
        parts += ["", *answer_tables(answer.plan, answer.estimate)]
    return as_text(parts, to_file)
