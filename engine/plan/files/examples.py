"""The plans that come with the program."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import PlanError

_PROFILES = "capacity_tui.profiles"
_SUFFIX = ".yaml"
_SCHEMA_LINE = "# yaml-language-server:"
_COMMENT = "# "


def example_names() -> tuple[str, ...]:
    """Return the names of the example plans in alphabetical order."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def example_text(name: str) -> str:
    """Return the YAML of an example, comments included, without the line that names its schema to editors.

    Raises:
        PlanError: no example is called that.
    """
    known = example_names()
    wanted = name.removesuffix(_SUFFIX)
    if wanted not in known:
        close = nearest(wanted, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise PlanError("no example is called", repr(name[:100]), hint)
    text = (_folder() / f"{wanted}{_SUFFIX}").read_text("utf-8")
    return text.partition("\n")[2] if text.startswith(_SCHEMA_LINE) else text


def example_title(name: str) -> str:
    """Return what an example is, from the first line of its comment."""
    return example_text(name).partition("\n")[0].removeprefix(_COMMENT)


def _folder() -> Traversable:
    return files(_PROFILES) / "examples"
