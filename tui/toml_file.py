"""Reads the TOML files that a person writes for the screen: settings and themes."""

from __future__ import annotations

import re
import tomllib

from capacity_tui.engine.errors import CapacityError, Place

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
        found = _LINE.search(str(error))
        place = Place(file, int(found[1])) if found else Place(file)
        raise CapacityError(_LINE.sub("", str(error)), hint='write `key = "value"`', place=place) from error
