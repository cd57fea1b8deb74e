"""Texts of other tools as data with lines: YAML, JSON, and TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from capacity_tui.engine.catalog import Document, KeyPath, Plain, read_yaml

_REFERENCE = re.compile(r"\$\{([\w.]+)\}")

_TABLE = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]")

_ENTRY = re.compile(r"\s*([\w.\"'-]+)\s*=")


def read_text_of_tool(text: str, name: str) -> Document:
    """Return data and lines of a text, whatever form it has.

    Raises:
        DocumentError: it is none of the forms.
    """
    if text.lstrip()[:1] == "{":
        # Tabs are spaces in JSON; YAML, which it is part of otherwise, has none.
        return read_yaml(text.replace("\t", " "), name, of_other_tool=True)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        document = read_yaml(text, name, of_other_tool=True)
        return Document(_interpolated(document.data, document.data), name, document.lines)
    return Document(tables, name, dict(_toml_lines(text)))


def _interpolated(data: Plain, whole: Plain) -> Plain:
    """Return data with references to other keys of the file replaced by their values, as OmegaConf has them."""
    if isinstance(data, dict):
        return {key: _interpolated(value, whole) for key, value in data.items()}
    if isinstance(data, list):
        return [_interpolated(value, whole) for value in data]
    if not isinstance(data, str) or "${" not in data:
        return data
    alone = _REFERENCE.fullmatch(data)
    return _at(whole, alone) if alone else _REFERENCE.sub(lambda match: str(_at(whole, match)), data)


def _at(data: Plain, reference: re.Match[str]) -> Plain:
    """Return the value that a reference names; its own text where it names none."""
    for key in reference[1].split("."):
        if not isinstance(data, dict) or key not in data:
            return reference[0]
        data = data[key]
    return reference[0] if isinstance(data, dict | list) else data


def _toml_lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the lines of the tables and entries of a TOML text."""
    above: KeyPath = ()
    for line, content in enumerate(text.splitlines(), 1):
        if table := _TABLE.match(content):
            above = tuple(part.strip("\"'") for part in table[1].split("."))
            yield above, line
        elif entry := _ENTRY.match(content):
            yield (*above, *(part.strip("\"'") for part in entry[1].split("."))), line
