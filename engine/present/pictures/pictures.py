"""What is behind a figure as a picture of text: roofline, memory over a step, parts of a step."""

from __future__ import annotations

from typing import TypeAlias

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.explain import MemoryTimeline, Roofline, StepTimeline, memory_timeline, roofline, step_timeline
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.present.pictures.roofline_chart import ASCII, UNICODE, roofline_lines
from capacity_tui.engine.present.pictures.timeline_chart import ASCII_BARS, BLOCKS, memory_lines, step_lines

Picture: TypeAlias = Roofline | MemoryTimeline | StepTimeline
PICTURES = {"memory": "Memory", "computation": "Time", "bottleneck": "Roofline"}
"""What there is a picture of, by the group of result keys that it belongs to."""
_ON_THE_ROOFLINE = (Figure.MFU, Figure.MODEL_TFLOPS_PER_DEVICE)
_MARGIN = 1
"""Columns the roofline's axis takes beside its plane."""


def picture_of(key: str, answer: Answer) -> Picture | None:
    """Return the picture behind the figure of a result key, or of a whole group of them; None where there is none."""
    group = "bottleneck" if key in _ON_THE_ROOFLINE else key.partition(".")[0]
    if group == "memory":
        return memory_timeline(answer.estimate)
    if group == "computation":
        return step_timeline(answer.estimate)
    return roofline(answer) if group == "bottleneck" else None


def picture_lines(picture: Picture, width: int, ascii_only: bool = False) -> tuple[str, ...]:
    """Return a picture as lines of text.

    Args:
        picture: what to draw.
        width: columns there are.
        ascii_only: whether it is drawn with ASCII characters alone.
    """
    if isinstance(picture, Roofline):
        return roofline_lines(picture, max(width - _MARGIN, 2), glyphs=ASCII if ascii_only else UNICODE)
    bars = ASCII_BARS if ascii_only else BLOCKS
    return (
        memory_lines(picture, width, bars) if isinstance(picture, MemoryTimeline) else step_lines(picture, width, bars)
    )
