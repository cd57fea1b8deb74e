"""``fleet recommend``: machines for a job that has to end in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.tui.headless import completion
from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import changed_plan, machine_for
from capacity_tui.tui.headless.progress import progress
from capacity_tui.tui.headless.questions import DEVICES, interrupted, names_of

if TYPE_CHECKING:
    from capacity_tui.engine.fleet import Recommended
    from capacity_tui.engine.plan.line import PlanFlags

NO_ANSWER = 1


@click.command()
@click.argument("file", required=False, metavar="[PLAN]")
@plan_flags
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", shell_complete=completion.fields,
              help="Change a value of the plan first; may be repeated.")  # fmt: skip
@click.option("--deadline", metavar="TIME", required=True, help="When the job has to be done, such as 24h.")
@click.option("--budget", metavar="USD", help="The most that it may cost, such as 500.")
@click.option("--hardware", multiple=True, metavar="NAMES", shell_complete=completion.devices,
              help="Instances or devices to choose among: ids with commas, a vendor or cloud for all of theirs. "
                   "By default all instances.")  # fmt: skip
@click.option("--devices", metavar="LO..HI", help="Numbers of devices to try, such as 8..64; by default up to 64.")
@config_option
@format_option("table", "json", "yaml")
@output_option
def recommend(
    file: str | None,
    flags: PlanFlags,
    settings: tuple[str, ...],
    deadline: str,
    budget: str | None,
    hardware: tuple[str, ...],
    devices: str | None,
    config: Path | None,
    wanted: str | None,
    output: Path | None,
) -> int:
    """Recommend machines for a job that has to end in time: the cheapest, the fastest, and the one that balances.

    Each with its memory, cores, storage, GPUs, database and cost. Time and cost hold at the far end of their ranges.
    Ctrl-C stops and shows the best so far. Exit code 1 where nothing ends in time.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.fleet import DeadlineQuestion
    from capacity_tui.engine.fleet import recommend as recommended
    from capacity_tui.engine.present import to_json, to_yaml
    from capacity_tui.engine.present.fleet import recommended_as_dict, recommended_parts, recommended_so_far
    from capacity_tui.engine.solve.search import parse_axis
    from capacity_tui.engine.units import parse_quantity
    from capacity_tui.tui.headless.tables.layout import rich_parts

    (name,) = sources_of((file,) if file else (), flags)
    plan = changed_plan(source_of(name, flags).plan(), settings)
    question = DeadlineQuestion(
        plan,
        parse_quantity(deadline, "s"),
        None if budget is None else parse_quantity(budget, "USD"),
        names_of(hardware),
        tuple(int(str(count)) for count in parse_axis(f"{DEVICES}={devices}").values) if devices else (),
    )
    with interrupted() as stopped, progress() as shown:

        def tell(so_far: Recommended) -> None:
            shown.show(lambda: recommended_so_far(so_far))

        found = recommended(question, load_catalog(fleet_files=config), machine_for(plan), tell, stopped)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        data = recommended_as_dict(found)
        write(to_json(data) if form == "json" else to_yaml(data), output)
    else:
        write(as_text(rich_parts(recommended_parts(question, found)), output is not None), output)
    return NO_ANSWER if found.balanced is None else 0
