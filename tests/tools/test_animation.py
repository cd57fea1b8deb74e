"""The moving picture: each frame has its part of the time, and text is text."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from screenshots.animation import Frame, Run, animated

PLAIN = ("default", "default", False)


def frame(text: str) -> Frame:
    return ((Run(0, text, PLAIN),), (Run(0, "same", ("green", "000080", True)),))


def test_frames_follow_each_other_without_a_gap() -> None:
    drawing = animated([(1.0, frame("one")), (2.0, frame("two")), (1.0, frame("three"))], 20, 2, "title")
    ET.fromstring(drawing)
    shown = [
        (float(a), float(b))
        for a, b in re.findall(r"([\d.]+)%\{visibility:visible\}([\d.]+)%\{visibility:hidden", drawing)
    ]
    assert shown == [(0, 25), (25, 75), (75, 100)]
    # A row that several frames have is drawn once.
    assert drawing.count(">same<") == 1
    assert drawing.count("<use ") == 6


def test_text_that_looks_like_markup_is_text() -> None:
    drawing = animated([(1.0, frame("memory<=95 % & more"))], 30, 2, "a < b")
    text = [element.text for element in ET.fromstring(drawing).iter() if element.tag.endswith("text")]
    assert "memory<=95\u00a0%\u00a0&\u00a0more" in text
