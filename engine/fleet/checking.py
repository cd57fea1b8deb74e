"""What is wrong with the user's own instances, sizes and workloads, and what was read otherwise than written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.fleet_files import Remark
from capacity_tui.engine.errors import CapacityError


@dataclass(frozen=True)
class Checked:
    """What was found; whatever is not named here is used.

    Attributes:
        files: files of the fleet guide that were read.
        faults: what cannot be used, with file, line and field.
        remarks: what was read otherwise than it is written.
        known: how many instances, sizes, workloads and sets there are, the shipped ones among them.
    """

    files: tuple[Path, ...]
    faults: tuple[CapacityError, ...]
    remarks: tuple[Remark, ...]
    known: Mapping[str, int]


def check_fleet_files(fleet_files: Path | None = None) -> Checked:
    """Return every fault of the user's own files.

    Args:
        fleet_files: a JSON file of the fleet guide alone, or those of a folder; None for all of the user's own files.

    Raises:
        CatalogError: there is no such file, or none in the folder.
    """
    catalog = load_catalog(None, fleet_files)
    if fleet_files is None:
        return _checked(catalog)
    found = _checked(catalog)
    named = {str(path) for path in catalog.fleet_files if path == fleet_files or fleet_files in path.parents}
    return Checked(
        tuple(path for path in found.files if str(path) in named),
        tuple(fault for fault in found.faults if fault.place.file in named),
        tuple(remark for remark in found.remarks if remark.place.file in named),
        found.known,
    )


def _checked(catalog: Catalog) -> Checked:
    known = {
        "instances": len(catalog.instances),
        "sizes": len(catalog.model_sizes),
        "workloads": len(catalog.workloads),
        "sets": len(catalog.workload_sets),
    }
    return Checked(tuple(catalog.fleet_files), catalog.problems, catalog.remarks, known)
