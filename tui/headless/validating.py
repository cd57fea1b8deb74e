"""``validate``: what is wrong with plans, with files of instances, sizes and workloads, and with the own catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.tui.headless.faults import fault_data, place_data
from capacity_tui.tui.headless.output import format_option, say, tell, write
from capacity_tui.tui.headless.plan_sources import plan_flags, source_of, sources_of
from capacity_tui.tui.headless.plans import machine_for

if TYPE_CHECKING:
    from capacity_tui.engine.catalog import Catalog
    from capacity_tui.engine.plan.line import PlanFlags


@dataclass(frozen=True, slots=True)
class _Checked:
    """What there is to say of one file.

    Attributes:
        name: the file, or what stands for it.
        faults: what is wrong with it.
        remarks: what it says in vain, and where.
    """

    name: str
    faults: tuple[CapacityError, ...] = ()
    remarks: tuple[tuple[Place, str], ...] = ()


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@plan_flags
@format_option("table", "json")
def validate(files: tuple[str, ...], flags: PlanFlags, wanted: str | None) -> int:
    """Check plans, and JSON files of instances, sizes and workloads, and say what is wrong where.

    Without a FILE or flags only your own catalogue is checked.
    """
    from capacity_tui.engine.catalog import load_catalog
    from capacity_tui.engine.models import plugin_problems

    catalog = load_catalog()
    own = _Checked("the catalogues", (*catalog.problems, *plugin_problems(catalog)))
    names = sources_of(files, flags) if files or flags.is_given else ()
    if wanted == "json":
        return _write_data(own, [_checked(name, flags, catalog) for name in names])
    _tell_faults(own)
    if not names:
        _tell_valid(own)
        return _exit_code(own)
    codes = []
    for name in names:
        checked = _checked(name, flags, catalog)
        _tell_faults(checked)
        _tell_valid(checked)
        codes.append(_exit_code(checked))
    return max(codes)


def _checked(name: str | None, flags: PlanFlags, catalog: Catalog) -> _Checked:
    """Return what is wrong with a file, and what it sets in vain."""
    if name is not None and name.endswith(".json") and (found := _checked_fleet_file(Path(name))) is not None:
        return found
    from capacity_tui.engine.solve import faults as plan_faults
    from capacity_tui.engine.solve import remarks as plan_remarks

    called = name or "the flags"
    try:
        source = source_of(name, flags)
        found_faults = tuple(plan_faults(source, catalog, machine_for))
        vain = () if found_faults else tuple(plan_remarks(source, catalog, machine_for))
    except CapacityError as error:
        return _Checked(called, (error,))
    return _Checked(called, found_faults, tuple((place, f"changes nothing here: {reason}") for place, reason in vain))


def _checked_fleet_file(path: Path) -> _Checked | None:
    """Return what is wrong with a file of instances, sizes or workloads; None where it is no such file."""
    from capacity_tui.engine.catalog.fleet_files import is_fleet_file
    from capacity_tui.engine.fleet import check_fleet_files

    if not path.is_file() or not is_fleet_file(path):
        return None
    checked = check_fleet_files(path)
    return _Checked(str(path), tuple(checked.faults), tuple((remark.place, remark.words) for remark in checked.remarks))


def _tell_faults(checked: _Checked) -> None:
    for fault in checked.faults:
        tell(f"capacity-tui: {fault.one_line()}")


def _tell_valid(checked: _Checked) -> None:
    """Say that a file is valid where it is, and what it says in vain."""
    if not checked.faults:
        say(f"{checked.name}: valid")
    for place, reason in checked.remarks:
        tell(f"capacity-tui: {place}: {reason}")


def _exit_code(checked: _Checked) -> int:
    return max((fault.exit_code for fault in checked.faults), default=0)


def _write_data(own: _Checked, files: list[_Checked]) -> int:
    """Write what was checked as one JSON object; return the exit code."""
    from capacity_tui.engine.present import to_json

    decisive = files or [own]
    data: dict[str, object] = {
        "valid": not any(checked.faults for checked in decisive),
        "files": [
            {"file": checked.name, "valid": not checked.faults, "faults": [*map(fault_data, checked.faults)],
             "remarks": [{**place_data(place), "detail": reason} for place, reason in checked.remarks]}
            for checked in files
        ],
        "catalogue": [*map(fault_data, own.faults)],
    }  # fmt: skip
    write(to_json(data), None)
    return max(map(_exit_code, decisive))
