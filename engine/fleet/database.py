"""What keeps a job's samples and runs: a file beside them, or a database server, and how large that has to be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from capacity_tui.engine.catalog import Catalog, load_catalog, named_numbers
from capacity_tui.engine.catalog.fleet_files import Remark
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import GIGA


@dataclass(frozen=True, slots=True)
class Database:
    """Where samples and runs are kept."""

    kind: str  # ``file`` for SQLite beside the data, ``server`` for one that several machines write to (MongoDB)
    storage_bytes: float  # disk space of data, indexes and what is free between them
    memory_bytes: float  # memory of its server, or of the cache of a file
    cores: int  # cores of its server; 0 for a file, which the job's own serve
    reason: str  # why it is that kind


@equation(
    "data · (1 + overhead)",
    unit="B",
    source="indexes and free space of stored documents",
    data=("bytes of what is stored", "B"),
    overhead="indexes and free space, as a share of it",
)
def database_bytes(data: Number, overhead: Number) -> Number:
    """Disk space of a database."""
    return data * (1.0 + overhead)


@equation(
    "base + stored · working / cache",
    unit="B",
    source="MongoDB manual, WiredTiger: the cache takes half of the memory beyond 1 GB; it should hold what is in use",
    base=("bytes that the system takes", "B"),
    stored=("bytes of data and indexes", "B"),
    working="share of them that is in use at a time",
    cache="share of the memory beyond the base that the cache takes",
)
def server_memory_bytes(base: Number, stored: Number, working: Number, cache: Number) -> Number:
    """Memory of a database server whose cache holds what is worked with."""
    return base + stored * working / cache


def database_for(data_bytes: float, machines: int) -> Database:
    """Return what keeps so much data for a job on so many machines."""
    stored = mean(database_bytes(data_bytes, assumed("database_overhead")))
    base = assumed("database_base_gb") * GIGA
    most = assumed("file_database_gb") * GIGA
    if machines == 1 and stored <= most:
        return Database("file", stored, base, 0, "one machine writes, and a file is enough")
    memory = mean(server_memory_bytes(base, stored, assumed("database_working_share"), assumed("database_cache_share")))
    reason = f"{machines} machines write at once" if machines > 1 else "too much for a single file"
    return Database("server", stored, memory, int(assumed("database_cores")), reason)


@dataclass(frozen=True)
class Checked:
    """What was found; whatever is not named here is used."""

    files: tuple[Path, ...]  # files of the fleet guide that were read
    faults: tuple[CapacityError, ...]  # what cannot be used, with file, line and field
    remarks: tuple[Remark, ...]  # what was read otherwise than it is written
    # names of the instances, sizes, workloads and sets there are, the shipped ones among them
    known: Mapping[str, tuple[str, ...]]


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
    result = _checked(catalog)
    named = {str(path) for path in catalog.fleet_files if path == fleet_files or fleet_files in path.parents}
    return Checked(
        tuple(path for path in result.files if str(path) in named),
        tuple(fault for fault in result.faults if fault.place.file in named),
        tuple(remark for remark in result.remarks if remark.place.file in named),
        result.known,
    )


def _checked(catalog: Catalog) -> Checked:
    known = {
        "instances": tuple(catalog.instances),
        "sizes": tuple(catalog.model_sizes),
        "workloads": tuple(catalog.workloads),
        "sets": tuple(catalog.workload_sets),
    }
    return Checked(tuple(catalog.fleet_files), catalog.problems, catalog.remarks, known)


def assumed(key: str) -> float:
    """Return an assumed number by its key."""
    return named_numbers("migration.yaml")[key].value
