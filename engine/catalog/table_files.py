"""The files that the rows of a table stand in: those that ship, and the user's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from capacity_tui.engine.errors import CatalogError, Place

_PACKAGE = "capacity_tui.profiles"


def shipped_files(stem: str) -> list[Traversable]:
    """Return the packaged file of a table, or the files of its folder."""
    profiles = files(_PACKAGE)
    alone = profiles / f"{stem}.yaml"
    if alone.is_file():
        return [alone]
    in_folder = [file for file in (profiles / stem).iterdir() if file.name.endswith(".yaml")]
    return sorted(in_folder, key=lambda file: file.name)


def own_files(directory: Path, stem: str) -> list[Path]:
    """Return the user's own file of a table and the files of its folder, as far as there are any."""
    alone = directory / f"{stem}.yaml"
    return [*([alone] if alone.exists() else []), *sorted((directory / stem).glob("*.yaml"))]


def stray_files(directory: Path, stems: Collection[str]) -> Iterator[CatalogError]:
    """Yield what is wrong with the user's YAML files that no table reads.

    Args:
        directory: the folder of the user's catalogue.
        stems: what files and folders there may be called, without suffix.
    """
    for path in sorted([*directory.glob("*.y*ml"), *directory.glob("*/*.y*ml")]):
        stem = path.stem if path.parent == directory else path.parent.name
        if stem not in stems:
            hint = f"its files are called {', '.join(sorted(stems))}"
        elif path.suffix != ".yaml":
            hint = f"call it {path.stem}.yaml"
        else:
            continue
        yield CatalogError("no part of the catalogue, and left out", hint=hint, place=Place(str(path)))
