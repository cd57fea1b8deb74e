"""Themes as data: one YAML file each, checked before the screen sees it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.tui import flat_yaml

BUNDLED = ("dark", "light", "ansi", "colour-blind", "high-contrast")
"""The themes that come along, in the order in which the key walks through them."""

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
    for path in (Path(name), user_folder / f"{name}.yaml"):
        if path.suffix == ".yaml" and path.is_file():
            return parse(path.read_text(encoding="utf-8"), str(path))
    if name not in BUNDLED:
        raise CapacityError("unknown theme", name, f"there are {', '.join(BUNDLED)}, or a path of a file")
    return parse((files("capacity_tui.themes") / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")


def parse(text: str, file: str) -> Theme:
    """Return the theme that a file describes.

    Raises:
        CapacityError: a field is missing, unknown or not a colour; the error names file and field.
    """
    values = flat_yaml.read(text, file)
    known = {"name", "dark", "ansi", *_BASE, *_COLOURS, *_STYLES}
    for field in (*values, *known):
        place = Place(file, field=field)
        if field not in known:
            raise CapacityError("unknown field of a theme", place=place)
        if field not in values:
            raise CapacityError("theme lacks a field", place=place)
        if field in {*_BASE, *_COLOURS}:
            _check_colour(values[field], place)
    return Theme(
        name=f"capacity-{values['name']}",
        dark=values["dark"] == "true",
        ansi=values["ansi"] == "true",
        variables={**_own_variables(values), **{field: values[field] for field in (*_COLOURS, *_STYLES)}},
        background=values["background"],
        surface=values["surface"],
        panel=values["panel"],
        foreground=values["foreground"],
        primary=values["primary"],
        secondary=values["secondary"],
        accent=values["accent"],
        success=values["success"],
        warning=values["warning"],
        error=values["error"],
    )


def _own_variables(values: dict[str, str]) -> dict[str, str]:
    """Return the variables that Textual's own style sheets need in a theme of the terminal's colours."""
    if values["ansi"] != "true":
        return {}
    return BUILTIN_THEMES["ansi-dark" if values["dark"] == "true" else "ansi-light"].variables


def _check_colour(text: str, place: Place) -> None:
    try:
        Color.parse(text)
    except ColorParseError as error:
        raise CapacityError("not a colour", text, "write #rrggbb or ansi_blue", place) from error
