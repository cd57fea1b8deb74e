"""What each figure of a result means, in plain English: ``profiles/figures.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

from capacity_tui.engine.catalog.parsed import parse_shipped


def figure_text(key: str) -> str:
    """Return what a figure is and why it matters, in two sentences, by its result key; empty for one that has none."""
    return _texts().get(key, "")


@cache
def _texts() -> Mapping[str, str]:
    return cast("Mapping[str, str]", parse_shipped(files("capacity_tui.profiles") / "figures.yaml")["figures"])


def usual_words(label: str) -> str:
    """Return a label of a metric in the words of most runs."""
    return label.format(unit="token", counted="tokens", iteration="step", job="training")
