"""Styles of what is written to a terminal, each told only as far as it differs from the one before.

Rich ends every piece of text by taking all of its style back, and begins the next by telling all of it: half of what a
changed screen writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOLD = re.compile(r"(\x1b\[[\d;]*[mH])")
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
    for index, piece in enumerate(_TOLD.split(text)):
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
