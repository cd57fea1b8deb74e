"""Images of containers: which program they start where a container gives options alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capacity_tui.engine.catalog import parse_shipped


@cache
def words_of_manifests() -> Mapping[str, Any]:
    """Return what files say that run programs on machines: ``profiles/manifests.yaml``."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "manifests.yaml")
    return rows


def program_of_image(image: str, variables: Iterable[tuple[str, str]] = ()) -> str:
    """Return the program that an image of a name starts; empty for one that is not known.

    Args:
        image: its name.
        variables: of the container: an image of one model has its options in them.
    """
    programs: Mapping[str, str] = words_of_manifests()["images"]
    part, program = next(((part, program) for part, program in programs.items() if part in image), ("", ""))
    if program not in words_of_manifests()["one_model"]:
        return program
    model = image.partition(part)[2].partition(":")[0].partition("@")[0]
    options = (f"--{name}={value}" for name, value in variables if name.startswith(f"{program.upper()}_"))
    return shlex.join([program, f"--model={model}", *options])
