"""``storage plan``: what a training keeps and moves: data, checkpoints, caches, main memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for

if TYPE_CHECKING:
    from capacity_tui.engine.plan.line import PlanFlags


@click.command()
@click.argument("name", metavar="[PLAN]", required=False, type=click.Path())
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value first; may be repeated.")  # fmt: skip
@format_option("table", "json", "yaml")
@output_option
def plan(
    name: str | None, flags: PlanFlags, settings: tuple[str, ...], wanted: str | None, output: Path | None
) -> None:
    """Say what a training keeps and moves: its data, how they reach the devices, checkpoints, caches, main memory.

    What the plan leaves open of its data the balanced mode chooses; a plan that says how or where its data lie also
    has their reading and decoding in the time of its steps.
    """
    from capacity_tui.engine.present.storage import storage_plan_as_dict, storage_plan_parts
    from capacity_tui.engine.solve import answer
    from capacity_tui.engine.storage.training import storage_plan
    from capacity_tui.tui.headless.tables.layout import rich_parts

    (source,) = (source_of(each, flags) for each in sources_of((name,) if name else (), flags))
    wished = changed_plan(source.plan(), settings)
    machine = machine_for(wished)
    found = storage_plan(answer(wished, machine), machine)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(storage_plan_as_dict(found), form, output)
    else:
        write(as_text(rich_parts(storage_plan_parts(found)), output is not None), output)
