"""Images of containers: which program they start where a container gives options alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import parse_shipped


@cache
def words_of_manifests() -> Mapping[str, Any]:
    """Return what files say that run programs on machines: ``profiles/manifests.yaml``."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "manifests.yaml")
    return rows


def program_of_image(image: str) -> str:
    """Return the program that an image of a name starts; empty for one that is not known."""
    programs: Mapping[str, str] = words_of_manifests()["images"]
    return next((program for part, program in programs.items() if part in image), "")
