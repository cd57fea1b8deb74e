"""Lines of styled text, the glyphs that the terminal can show, and styles in the fewest bytes that it understands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
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


def list_row(here: bool, title: str, detail: str, titled: int, width: int, role: str = "value") -> Line:
    """Return a line of an item: its title in so many cells, and what goes with it in the rest of the width."""
    detailed = Span(left(detail, max(width - titled - 2, 0)), "dim")
    return marked(here, Span(left(title, titled), role), " ", detailed)


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
    "✓✗→←↑↓━─│●◆•◂▸▾▴▲▼»▌▇░▒▓┊■…·×⋅÷±–—−≈≤≥²³µΔ°\u202f\u2009\xa0", "+x><^v--|o@*<>v^^v>|#.%=:#~|x*/~---~<>23ud    "
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


_ESCAPES = re.compile(r"(\x1b\[[\d;]*[mH])")
_COLOUR = re.compile(r"[34]8;(?:5;\d+|2;\d+;\d+;\d+)|\d+")

# What ends an attribute, by its code; bold and dim end together.
_END = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27", "8": "28", "9": "29"}
_NO_FOREGROUND, _NO_BACKGROUND = "39", "49"
_FOREGROUNDS = frozenset(map(str, (*range(30, 38), *range(90, 98))))
_BACKGROUNDS = frozenset(map(str, (*range(40, 48), *range(100, 108))))


class _Style(NamedTuple):
    """A style as a terminal knows it: codes of ECMA-48, none of them for its own colours."""

    attributes: frozenset[str] = frozenset()
    foreground: str = ""
    background: str = ""


_PLAIN = _Style()


def with_fewer_styles(text: str) -> str:
    """Return a text that shows the same on a terminal, in fewer bytes.

    Args:
        text: begins and ends in the plain style, and moves the cursor by absolute positions alone.
    """
    try:
        return "".join(_shortened(text))
    except ValueError:
        return text


def _shortened(text: str) -> Iterator[str]:
    """Yield the pieces of a text; raises ValueError for a code that is not known here."""
    shown = wanted = _PLAIN
    for index, piece in enumerate(_ESCAPES.split(text)):
        if index % 2 and piece.endswith("m"):
            wanted = _after(wanted, piece[2:-1])
        elif index % 2:
            yield piece
        elif piece:
            yield _change(shown, wanted)
            shown = wanted
            yield piece
    yield _change(shown, _PLAIN)


def _after(style: _Style, codes: str) -> _Style:
    """Return the style that codes make of one; raises ValueError for one that is not known here."""
    for code in _COLOUR.findall(codes) or ("0",):
        if code == "0":
            style = _PLAIN
        elif code in _END:
            style = style._replace(attributes=style.attributes | {code})
        elif code in _FOREGROUNDS or code.startswith("38;"):
            style = style._replace(foreground=code)
        elif code in _BACKGROUNDS or code.startswith("48;"):
            style = style._replace(background=code)
        else:
            raise ValueError(code)
    return style


def _change(shown: _Style, wanted: _Style) -> str:
    """Return the shortest that makes one style of another."""
    if shown == wanted:
        return ""
    ended = {_END[code] for code in shown.attributes - wanted.attributes}
    left = {code for code in shown.attributes if _END[code] not in ended}
    step = [*sorted(ended), *sorted(wanted.attributes - left)]
    step += [wanted.foreground or _NO_FOREGROUND] if wanted.foreground != shown.foreground else []
    step += [wanted.background or _NO_BACKGROUND] if wanted.background != shown.background else []
    anew = ["0", *sorted(wanted.attributes), *filter(None, (wanted.foreground, wanted.background))]
    return f"\x1b[{min(';'.join(anew), ';'.join(step), key=len)}m"
