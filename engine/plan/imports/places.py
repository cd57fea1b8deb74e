"""Where the files lie that others name: beside them, or where a run that starts above them finds them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from capacity_tui.engine.catalog import Plain, read_text
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.imports.texts import read_text_of_tool

_LARGEST_OPTIONS = 65536  # Bytes of a file of options; larger ones are data

_FARTHEST_FOLDER = 3  # Folders above a file in which what it names is looked for


def located(named: Path, folder: Path, given: set[Path]) -> Path | None:
    """Return where a file that another names lies: beside it, or where a run that starts above it finds it."""
    try:
        below = named.parts[1:] if named.is_absolute() else named.parts
        ends = [Path(*below[first:]) for first in range(len(below))]  # without folders of another machine
        for base in (folder, *list(folder.resolve().parents)[:_FARTHEST_FOLDER]):
            for tried in (base / named, base / "src" / named, *(base / end for end in ends)):
                if tried.is_file():
                    return tried
    except (OSError, ValueError):
        return None
    return next((path for path in given if path.name == named.name), None)


def other_script(script: Path, name: str) -> str | None:
    """Return the text of a script that another one names, beside it or where a run that starts above it finds it."""
    path = located(Path(name), script.parent, set())
    if path is None or path.resolve() == script.resolve():
        return None
    with suppress(CapacityError):
        return read_text(path)
    return None


def module_text(script: Path, module: str) -> str | None:
    """Return the text of a module that a Python script imports, where it lies beside it or above; None elsewhere."""
    named = Path(f"{module.replace('.', '/')}.py")
    above = list(script.resolve().parents)[1 : _FARTHEST_FOLDER + module.count(".")]  # which the name may begin at
    bases = (script.parent, *above) if module else ()
    for tried in (path for base in bases for path in (base / named, base / "src" / named)):
        with suppress(CapacityError, OSError, ValueError):
            if tried.is_file() and tried.resolve() != script.resolve():
                return read_text(tried)
    return None


def options_alongside(script: Path, path: str) -> Plain:
    """Return what stands in a file of options that a Python script names, where it lies beside it; None elsewhere."""
    where = located(Path(path), script.parent, set())
    with suppress(CapacityError, OSError):
        if where is not None and where.stat().st_size <= _LARGEST_OPTIONS:
            return read_text_of_tool(read_text(where), str(where)).data
    return None
