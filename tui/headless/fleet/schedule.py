"""``fleet schedule``: jobs with deadlines on a fleet."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import as_text, format_of, format_option, output_option, tell, write
from capacity_tui.tui.headless.plans import read_plan

MISSED = 1


@click.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--check", is_flag=True, help="Exit with 1 if a deadline is missed.")
@click.option("--seed", metavar="N", type=click.IntRange(0), default=1, show_default=True,
              help="Of the search: the same seed gives the same schedule.")  # fmt: skip
@format_option("table", "json", "yaml")
@output_option
def schedule(file: str, check: bool, seed: int, wanted: str | None, output: Path | None) -> int:
    """Schedule jobs on machines: order, start and end, machines, what is late and by how much, and the cost.

    FILE is YAML, - is standard input. Under fleet: entries of instance, count, free_from, usd_per_hour, name; under
    jobs: entries of plan or time, machines, only_on, earliest, deadline, priority, name. A plan is a file, an example,
    a saved plan, a line in quotes, or a plan itself. Times are such as 90s, 24h or 2d; plain numbers are hours.
    """
    from capacity_tui.engine.errors import PlanError
    from capacity_tui.engine.fleet.scheduling import read_entries as read_schedule
    from capacity_tui.engine.fleet.scheduling import schedule as scheduled
    from capacity_tui.engine.plan import Plan
    from capacity_tui.engine.present.fleet import schedule_as_dict, schedule_parts
    from capacity_tui.tui.headless.tables.layout import rich_parts

    folder = Path(file).parent

    def read(name: str) -> Plan:
        beside = folder / name
        return read_plan(str(beside) if file != "-" and beside.is_file() else name)

    try:
        found = scheduled(read_schedule(file, sys.stdin.buffer), read, None, None, seed)
    except PlanError as error:
        for fault in (error, *error.further):
            tell(f"capacity-tui: {fault.one_line()}")
        return error.exit_code
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        write_data(schedule_as_dict(found), form, output)
    else:
        write(as_text(rich_parts(schedule_parts(found)), output is not None), output)
    return MISSED if check and found.missed else 0
