"""Frequencies over ranks as lines of text: what was counted beside a law, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence

from capacity_tui.engine.present.pictures.roofline_chart import ASCII, UNICODE, Frame
from capacity_tui.engine.units import format_count

MARKS, ASCII_MARKS = ("●", "·"), ("o", ".")
"""What stands for a count and for the law, with any characters and with ASCII alone."""
_MARGIN = 1.2

Points = Sequence[tuple[float, float]]


def rank_frame(counted: Points) -> Frame:
    """Return a frame that holds every rank and count."""
    ranks, counts = ([point[place] for point in counted] for place in (0, 1))
    return Frame(min(ranks) / _MARGIN, max(ranks) * _MARGIN, min(counts) / _MARGIN, max(counts) * _MARGIN)


def rank_lines(
    counted: Points, law: Points, width: int = 60, height: int = 14, ascii_only: bool = False
) -> tuple[str, ...]:
    """Return counts over ranks drawn with characters, the law beneath them.

    Args:
        counted: ranks with their counts.
        law: ranks with what the law has there.
        width: columns of the plane.
        height: lines of the plane.
        ascii_only: whether to draw with ASCII characters alone.
    """
    frame, glyphs = rank_frame(counted), ASCII if ascii_only else UNICODE
    dot, line = ASCII_MARKS if ascii_only else MARKS
    plane = [[" "] * width for _ in range(height)]
    for points, mark in ((law, line), (counted, dot)):
        for rank, count in points:
            column = round(frame.across(rank) * (width - 1))
            row = height - 1 - round(frame.up(count) * (height - 1))
            if 0 <= column < width and 0 <= row < height:
                plane[row][column] = mark
    counts = [count for _, count in counted]
    last = f"rank {format_count(max(rank for rank, _ in counted))}"
    return (
        f"{format_count(max(counts))} times",
        *(f"{glyphs.axis}{''.join(row)}".rstrip() for row in plane),
        glyphs.corner + glyphs.floor * width,
        f" rank 1{last:>{max(width - 6, len(last) + 1)}}",
        f"{dot} counted, {line} the law; both axes logarithmic",
    )
