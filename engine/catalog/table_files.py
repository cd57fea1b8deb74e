"""The files that the rows of a table stand in: those that ship, and the user's own."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_PACKAGE = "capacity_tui.profiles"


def shipped_files(stem: str) -> list[Traversable]:
    """Return the packaged file of a table, or the files of its folder."""
    profiles = files(_PACKAGE)
    alone = profiles / f"{stem}.yaml"
    if alone.is_file():
        return [alone]
    found = [file for file in (profiles / stem).iterdir() if file.name.endswith(".yaml")]
    return sorted(found, key=lambda file: file.name)


def own_files(directory: Path, stem: str) -> list[Path]:
    """Return the user's own file of a table and the files of its folder, as far as there are any."""
    alone = directory / f"{stem}.yaml"
    return [*([alone] if alone.exists() else []), *sorted((directory / stem).glob("*.yaml"))]
