"""Lines of styled text, and the glyphs that the terminal can show."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Span(NamedTuple):
    """A piece of a line."""

    text: str  # what stands there
    role: str = ""  # names a component style such as ``dim`` or ``good``
    action: str = ""  # id of the action that a click on it does; empty for none


class Line(NamedTuple):
    """One line; ``selected`` paints it as the cursor's line."""

    spans: tuple[Span, ...] = ()
    selected: bool = False

    @property
    def plain(self) -> str:
        return "".join(span.text for span in self.spans)


def line(*parts: str | Span, selected: bool = False) -> Line:
    """Return a line of plain and styled parts."""
    return Line(tuple(Span(part) if isinstance(part, str) else part for part in parts), selected)


def marked(here: bool, *parts: Span | str) -> Line:
    """Return a line of an item, with a mark before it where the cursor is."""
    return line(Span("▌" if here else " ", "accent"), *parts, selected=here)


def plain_text(lines: Iterable[Line]) -> str:
    """Return lines as text, without styles and blanks at their ends."""
    return "\n".join(content.plain.rstrip() for content in lines) + "\n"


def clip(text: str, width: int) -> str:
    """Return the text in at most ``width`` cells, with an ellipsis where something was cut."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 1 else "…"[: max(width, 0)]


def left(text: str, width: int) -> str:
    """Return the text at the left of exactly ``width`` cells."""
    return set_cell_size(clip(text, width), max(width, 0))


def right(text: str, width: int) -> str:
    """Return the text at the right of exactly ``width`` cells."""
    text = clip(text, width)
    return " " * (width - cell_len(text)) + text


def spread(start: Line, end: Line, width: int) -> Line:
    """Return one line of ``width`` cells with its start at the left and its end at the right."""
    gap = width - cell_len(start.plain) - cell_len(end.plain)
    if gap < 1:
        return fit(start, width)
    return Line((*start.spans, Span(" " * gap), *end.spans), start.selected)


def fit(full: Line, width: int) -> Line:
    """Return the line cut to ``width`` cells."""
    spans: list[Span] = []
    room = width
    for span in full.spans:
        size = cell_len(span.text)
        if size > room:
            spans.append(span._replace(text=clip(span.text, room)))
            break
        spans.append(span)
        room -= size
    return Line(tuple(spans), full.selected)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Return the text in lines of at most ``width`` cells, broken at spaces, later ones indented."""
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        longer = f"{current} {word}" if current else word
        if current and cell_len(longer) > width:
            lines.append(current)
            longer = indent + word
        current = longer
    return [*lines, current] if current else lines


def fold(text: str, width: int) -> list[str]:
    """Return the text in lines of at most ``width`` cells, one at least; a word that is longer is broken."""
    if cell_len(text) <= width:
        return [text]
    indent = " " * min(len(text) - len(text.lstrip()), max(width - 1, 0))
    lines: list[str] = []
    for piece in wrap(text.strip(), width - len(indent)):
        rest = indent + piece
        while cell_len(rest) > width > 0:
            head = set_cell_size(rest, width).rstrip() or rest[:1]
            lines.append(head)
            rest = indent + rest[len(head) :].lstrip()
        lines.append(rest)
    return lines


class Glyphs(StrEnum):
    """What graphs and marks are drawn with."""

    BRAILLE = "braille"
    BLOCK = "block"
    ASCII = "ascii"


MOVED = "»"  # Stands beside what moved along with an edit

# One cell for one cell, so that alignment does not depend on the terminal.
_ASCII = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "→": ">",
        "←": "<",
        "↑": "^",
        "↓": "v",
        "━": "-",
        "─": "-",
        "│": "|",
        "●": "o",
        "◆": "@",
        "•": "*",
        "◂": "<",
        "▸": ">",
        "▾": "v",
        "▴": "^",
        "▲": "^",
        "▼": "v",
        "»": ">",
        "▌": "|",
        "▇": "#",
        "░": ".",
        "▒": "%",
        "▓": "=",
        "┊": ":",
        "■": "#",
        "…": "~",
        "·": "|",
        "×": "x",
        "⋅": "*",
        "÷": "/",
        "±": "~",
        "–": "-",
        "—": "-",
        "−": "-",
        "≈": "~",
        "≤": "<",
        "≥": ">",
        "²": "2",
        "³": "3",
        "°": " ",
        "µ": "u",
        "Δ": "d",
        "\u202f": " ",
        "\u2009": " ",
        "\xa0": " ",
    }
)


def to_ascii(text: str) -> str:
    """Return the text in ASCII; what has no stand-in becomes a question mark."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def choose(wanted: str, force_ascii: bool) -> Glyphs:
    """Return the glyphs to use: what was asked for, as far as the terminal's encoding carries it.

    Args:
        wanted: ``braille``, ``block``, ``ascii``, or empty for the best there is.
        force_ascii: whether ASCII was asked for on the command line.
    """
    encoding = getattr(sys.__stderr__, "encoding", None) or ""
    if force_ascii or not encoding.lower().replace("-", "").startswith("utf"):
        return Glyphs.ASCII
    return Glyphs(wanted) if wanted else Glyphs.BRAILLE
