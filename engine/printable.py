"""Text from outside, made harmless for a terminal; and results that show themselves in notebooks.

Files, catalogues, other packages, tools and other people's processes may hold terminal escapes, bells, C1 controls and
bidirectional overrides, which move the cursor, recolour or reorder a line. Whatever of their text is shown passes
through here.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence

_NO_BREAK = "\u00a0\u202f"  # Spaces that keep a number with its unit
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""What cells begin with that spreadsheets work out (OWASP, CSV Injection)."""
_LINE_BREAKS = str.maketrans("\t\n\r", "   ")


def printable(text: str) -> str:
    r"""Return a text as one line whose every character can be seen.

    Tabs and line breaks become spaces; what else has no glyph becomes its escape, such as ``\x1b`` or ``\u202e``.
    """
    line = text.translate(_LINE_BREAKS)
    if line.isprintable():
        return line
    return "".join(character if _is_harmless(character) else _escape(character) for character in line)


def printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def printable_data(data: object) -> object:
    """Return plain data with every text, and every text key, as one printable line."""
    if isinstance(data, str):
        return printable(data)
    if isinstance(data, dict):
        return {printable_data(key): printable_data(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(printable_data, data))
    return data


def csv_table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as comma-separated values, the names of the columns first.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    import csv  # noqa: PLC0415 - what is printed elsewhere needs none

    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writerow({name: _cell(name) for name in columns})
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Return a value as a cell: numbers as they are, also those that are texts."""
    if not isinstance(value, str) or not value.startswith(_FORMULA_SIGNS):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _is_harmless(character: str) -> bool:
    return character.isprintable() or character in _NO_BREAK


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


_writers: list[Callable[[object], str]] = []


class ShownInNotebooks:
    """A result that a notebook shows as a table in place of its representation."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Return the result as HTML, as notebooks ask for it; None where nothing writes it."""
        return _writers[-1](self) if _writers else None


def show_with(writer: Callable[[object], str]) -> None:
    """Have results shown by a function that returns one as HTML."""
    _writers.append(writer)
