"""Which glyphs the terminal can show, and what stands for the others."""

from __future__ import annotations

import sys
from enum import StrEnum


class Glyphs(StrEnum):
    """What graphs and marks are drawn with."""

    BRAILLE = "braille"
    BLOCK = "block"
    ASCII = "ascii"


MOVED = "»"
"""Stands beside what moved along with an edit."""
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
