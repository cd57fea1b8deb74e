"""Paths that the user types, and the TOML files that people write: settings and themes."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.files import config_folder, make_folder, write_atomically


def expanded(text: str) -> Path:
    """Return a path that was typed, with ``~`` replaced where such a user is known."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - the method raises for a user nobody knows


def settings_file() -> Path:
    """Return where the user's settings are read from."""
    return config_folder() / "settings.toml"


def plan_path(text: str, folder: Path) -> Path:
    """Return the path that was typed for a plan; a bare name lies in the folder, and YAML is the format."""
    path = expanded(text)
    path = path if path.suffix or not path.name else path.with_suffix(".yaml")
    return path if "/" in text else folder / path


def shortened(path: Path) -> str:
    """Return a path with ``~`` for the user's home."""
    home = str(expanded("~"))
    return str(path).replace(home, "~", 1) if str(path).startswith(home + "/") else str(path)


def write_file(path: Path, text: str) -> str:
    """Write a file in place of what was there; return why that failed, or an empty text."""
    try:
        make_folder(path.parent)
        write_atomically(path, text, overwrite=True)
    except CapacityError as error:
        return error.one_line()
    return ""


_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def read(text: str, file: str) -> dict[str, object]:
    """Return the values of a file.

    Args:
        text: content of the file.
        file: its name, for error messages.

    Raises:
        CapacityError: the text is not TOML, or a key stands twice; the error names the line.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _LINE.search(str(error))
        place = Place(file, int(match[1])) if match else Place(file)
        raise CapacityError(_LINE.sub("", str(error)), hint='write `key = "value"`', place=place) from error
