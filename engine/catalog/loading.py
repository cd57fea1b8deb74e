"""The catalogue of the folders that a user has, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from capacity_tui.engine.catalog.catalog import Catalog
from capacity_tui.engine.catalog.fleet_files.files import fleet_files_at, fleet_files_below, fleet_files_in
from capacity_tui.engine.catalog.rows.devices import Accelerator, Processor
from capacity_tui.engine.errors import CatalogError, Place
from capacity_tui.engine.files import config_folder, make_folder, write_atomically


def load_catalog(user_directory: Path | None = None, fleet_files: Path | None = None) -> Catalog:
    """Return the catalogue, with the user's own files from a directory laid over it.

    Args:
        user_directory: default is ``catalog`` in the user's configuration directory of capacity-tui.
        fleet_files: a JSON file of the fleet guide, or a folder that has some; default are those in the user's
            configuration directory, which such a file goes over.

    Raises:
        CatalogError: there is no such file, or none in the folder.
    """
    return cached_catalog(user_directory, fleet_files)


@cache
def cached_catalog(user_directory: Path | None, fleet_files: Path | None) -> Catalog:
    """Return the catalogue of some folders, read once until its cache is cleared."""
    home = config_folder()
    guide_files = fleet_files_in(user_directory) if user_directory else fleet_files_below(home)
    named_files = fleet_files_at(fleet_files) if fleet_files else ()
    return Catalog(user_directory or home / "catalog", [*guide_files, *named_files])


_A_NAME = re.compile(r"\w[\w .+-]{0,79}")


def register_hardware(name: str, fields: Mapping[str, object]) -> Accelerator | Processor:
    """Keep a device under a name that plans can give from then on; one of that name before is replaced.

    Args:
        name: what it is called, as in ``my_custom_gpu``.
        fields: those of a row of accelerators or processors, or of the ML Capacity Planner: ``type`` (gpu, tpu or
            cpu), ``peak_flops``, ``peak_flops_fp16``, ``mem_gb``, ``vram_gb``, ``bandwidth_gbps``, ``cost_per_hour``.

    Raises:
        CatalogError: a field is missing, unknown or out of range.
        StorageError: the file cannot be written.
    """
    if not _A_NAME.fullmatch(name):
        raise CatalogError("not a name of hardware", repr(name)[:100], "use letters, digits, - _ . and + only")
    table = "processors" if fields.get("type") == "cpu" or "cores" in fields else "accelerators"
    file = f"{name.replace(' ', '-')}.yaml"
    text = yaml.safe_dump({name: dict(fields)}, allow_unicode=True, sort_keys=False)
    with TemporaryDirectory() as folder:
        _write(Path(folder), table, file, text)
        tried = Catalog(Path(folder))
        for problem in (*tried.accelerators.problems, *tried.processors.problems):
            raise CatalogError(problem.title, problem.detail, problem.hint, Place(field=problem.place.field))
    keep_rows(table, file, text)
    catalog = load_catalog()
    return catalog.processors[name] if table == "processors" else catalog.accelerators[name]


def keep_rows(table: str, file: str, text: str | None, folder: Path | None = None) -> Path:
    """Write a file of the user's own rows and return it; whatever loads the catalogue from then on has them.

    Args:
        table: folder of the file, such as ``accelerators``.
        text: its rows; None takes the file away.
        folder: the user's own catalogue, by default that of the configuration.

    Raises:
        StorageError: it cannot be written.
    """
    home = folder or config_folder() / "catalog"
    if text is None:
        (home / table / file).unlink(missing_ok=True)
    else:
        _write(home, table, file, text)
    cached_catalog.cache_clear()
    return home / table / file


def _write(folder: Path, table: str, file: str, text: str) -> None:
    make_folder(folder / table)
    write_atomically(folder / table / file, text, overwrite=True)
