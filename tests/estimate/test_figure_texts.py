"""Every figure is explained in plain English."""

from __future__ import annotations

import re

import pytest

from capacity_tui.engine.estimate.figure_texts import figure_text
from capacity_tui.engine.estimate.figures import METRICS, PARTS

FIGURES = (*METRICS, *(f"{group}.{part}" for group, parts in PARTS.items() for part in parts))


@pytest.mark.parametrize("key", FIGURES)
def test_a_figure_is_explained_in_two_sentences(key: str) -> None:
    assert len(re.findall(r"[.!](?:\s|$)", figure_text(key))) == 2
    assert len(figure_text(key)) < 260
