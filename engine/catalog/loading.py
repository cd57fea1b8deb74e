"""The catalogue of the folders that a user has, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from capacity_tui.engine.catalog.catalog import Catalog
from capacity_tui.engine.catalog.fleet_files.files import fleet_files_at, fleet_files_below, fleet_files_in
from capacity_tui.engine.files import config_folder


def load_catalog(user_directory: Path | None = None, fleet_files: Path | None = None) -> Catalog:
    """Return the catalogue, with the user's own files from a directory laid over it.

    Args:
        user_directory: default is ``catalog`` in the user's configuration directory of capacity-tui.
        fleet_files: a JSON file of the fleet guide, or a folder that has some; default are those in the user's
            configuration directory, which such a file goes over.

    Raises:
        CatalogError: there is no such file, or none in the folder.
    """
    return kept_catalog(user_directory, fleet_files)


@cache
def kept_catalog(user_directory: Path | None, fleet_files: Path | None) -> Catalog:
    """Return the catalogue of some folders, read once until its cache is cleared."""
    home = config_folder()
    guide_files = fleet_files_in(user_directory) if user_directory else fleet_files_below(home)
    named_files = fleet_files_at(fleet_files) if fleet_files else ()
    return Catalog(user_directory or home / "catalog", [*guide_files, *named_files])
