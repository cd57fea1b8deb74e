"""Themes as data: one TOML file each, checked before the screen sees it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.tui.settings import read_toml

T = TypeVar("T")
BUNDLED = ("dark", "light", "ansi", "colour-blind", "high-contrast")
"""The themes that come along, in the order in which the key walks through them."""

_FOLDER = Path(__file__).parents[2] / "themes"  # Where they lie; importlib.resources would hold up the first frame
_BASE = (
    *("background", "surface", "panel", "foreground", "primary", "secondary"),
    *("accent", "success", "warning", "error"),
)
_COLOURS = (
    *("dim", "label", "value", "best", "border-quiet", "border-active", "cursor"),
    *("badge", "badge-text", "graph-1", "graph-2", "graph-3", "graph-4"),
)
_STYLES = ("dim-style", "cursor-style")


def load(name: str, user_folder: Path) -> Theme:
    """Return a theme by name, from the user's folder or the bundled ones, or by path.

    Raises:
        CapacityError: there is no such theme, or a field of it is missing or not a colour.
    """
    for path in (Path(name), user_folder / f"{name}.toml"):
        if path.suffix == ".toml" and path.is_file():
            return parse(path.read_text(encoding="utf-8"), str(path))
    if name not in BUNDLED:
        raise CapacityError("unknown theme", name, f"there are {', '.join(BUNDLED)}, or a path of a .toml file")
    return parse((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")


def parse(text: str, file: str) -> Theme:
    """Return the theme that a file describes; raises CapacityError with the file and the field that is wrong."""
    values = read_toml(text, file)
    colours = {field: _colour(values, field, file) for field in (*_BASE, *_COLOURS)}
    switches = {field: _value(values, field, file, bool, "neither true nor false") for field in ("dark", "ansi")}
    texts = {field: _text(values, field, file) for field in ("name", *_STYLES)}
    if unknown := next((field for field in values if field not in {*colours, *switches, *texts}), None):
        raise CapacityError("unknown field of a theme", place=Place(file, field=unknown))
    variables = {**{field: colours[field] for field in _COLOURS}, **{field: texts[field] for field in _STYLES}}
    # What Textual's own style sheets need in a theme of the terminal's colours.
    ansi = BUILTIN_THEMES["ansi-dark" if switches["dark"] else "ansi-light"].variables
    usual = ansi if switches["ansi"] else {}
    base: dict[str, Any] = {field: colours[field] for field in _BASE}
    return Theme(
        name=f"capacity-{texts['name']}",
        dark=switches["dark"],
        ansi=switches["ansi"],
        variables={**usual, **variables},
        **base,
    )


def _value(values: Mapping[str, object], field: str, file: str, kind: type[T], fault: str, hint: str = "") -> T:
    place, value = Place(file, field=field), values.get(field)
    if value is None:
        raise CapacityError("theme is missing a field", place=place)
    if not isinstance(value, kind):
        raise CapacityError(fault, str(value), hint, place)
    return value


def _text(values: Mapping[str, object], field: str, file: str) -> str:
    return _value(values, field, file, str, "not a text", "write it in quotes")


def _colour(values: Mapping[str, object], field: str, file: str) -> str:
    text = _text(values, field, file)
    try:
        Color.parse(text)
    except ColorParseError as error:
        hint = "write #rrggbb or ansi_blue"
        raise CapacityError("not a colour", text, hint, Place(file, field=field)) from error
    return text
