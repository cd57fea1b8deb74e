"""Reads the flat subset of YAML that themes and settings are written in.

The first frame needs a theme and the settings, and loading a full YAML parser would delay it by a tenth.
The subset: ``key: value`` lines, one level of ``section:`` with indented ``key: value`` lines below,
comments, and values in single or double quotes.
"""

from __future__ import annotations

from collections.abc import Mapping

from capacity_tui.engine.errors import CapacityError, Place


def read(text: str, file: str) -> dict[str, str]:
    """Return the values by key, those in a section as ``section.key``.

    Args:
        text: content of the file.
        file: its name, for error messages.

    Raises:
        CapacityError: a line is outside the subset, or a key stands twice.
    """
    values: dict[str, str] = {}
    section = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        content = _without_comment(raw)
        if not content.strip():
            continue
        key, colon, value = content.strip().partition(":")
        if not colon or (value and not value.startswith(" ")):
            raise CapacityError("line is not `key: value`", raw.strip(), place=Place(file, number))
        indented = content[0].isspace()
        if not value.strip() and not indented:
            section = key.strip()
            continue
        name = f"{section}.{_unquoted(key)}" if indented and section else _unquoted(key)
        if name in values:
            raise CapacityError("key stands twice", place=Place(file, number, name))
        values[name] = _unquoted(value)
    return values


def write(values: Mapping[str, str]) -> str:
    """Return the values as a file that ``read`` understands, sections last."""
    plain = [f"{key}: {_quoted(value)}" for key, value in values.items() if "." not in key]
    sections: dict[str, list[str]] = {}
    for key, value in values.items():
        section, dot, name = key.partition(".")
        if dot:
            sections.setdefault(section, []).append(f"  {name}: {_quoted(value)}")
    for section, entries in sections.items():
        plain += [f"{section}:", *entries]
    return "\n".join(plain) + "\n"


def _without_comment(raw: str) -> str:
    quote = ""
    for index, character in enumerate(raw):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (index == 0 or raw[index - 1].isspace()):
            return raw[:index]
    return raw


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _quoted(text: str) -> str:
    return f'"{text}"' if not text or not text.replace("_", "").replace("-", "").isalnum() else text
