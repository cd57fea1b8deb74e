"""``fleet check``: what is wrong with one's own instances, sizes and workloads."""

from __future__ import annotations

from pathlib import Path

import click

from capacity_tui.tui.headless.faults import fault_data, place_data
from capacity_tui.tui.headless.fleet.config import config_option
from capacity_tui.tui.headless.listings import write_data
from capacity_tui.tui.headless.output import format_of, format_option, output_option, write

_LISTED_BY = {"instances": "instances", "sizes": "fleet sizes", "workloads": "workloads", "sets": "fleet sets"}


@click.command()
@config_option
@format_option("text", "json", "yaml")
@output_option
def check(config: Path | None, wanted: str | None, output: Path | None) -> int:
    """Tell what is known, and name every fault of your own catalogues and JSON files; whatever has none is used."""
    from capacity_tui.engine.files import config_folder
    from capacity_tui.engine.fleet import check_fleet_files
    from capacity_tui.engine.printable import printable

    found = check_fleet_files(config)
    form = wanted or format_of(output)
    if form in ("json", "yaml"):
        data = {
            "valid": not found.faults,
            "files": [str(path) for path in found.files],
            "faults": [fault_data(fault) for fault in found.faults],
            "remarks": [{**place_data(remark.place), "detail": remark.words} for remark in found.remarks],
            "known": dict(found.known),
        }
        write_data(data, form, output)
    else:
        lines = [f"fault: {fault.one_line()}" for fault in found.faults]
        lines += [f"note: {remark.one_line()}" for remark in found.remarks]
        lines += [] if found.faults else ["your own catalogues: no faults"]
        lines += [f"{count} {kind} known: capacity-tui {_LISTED_BY[kind]}" for kind, count in found.known.items()]
        lines += [f"files of your own lie in {config_folder() / 'catalog'}, or where --config says"]
        write("".join(f"{printable(line)}\n" for line in lines), output)
    return max((fault.exit_code for fault in found.faults), default=0)
