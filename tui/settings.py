"""The user's settings: theme, glyphs, mouse, live interval and keys, from one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.files import config_folder, make_folder, write_atomically
from capacity_tui.tui import flat_yaml
from capacity_tui.tui.glyphs import Glyphs

SLOWEST_SECONDS = 60.0
FASTEST_SECONDS = 0.5
"""Reading the sensors more often slows the job that is being watched."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose once and for all.

    Attributes:
        theme: name of a theme, or a path of a theme file.
        glyphs: ``braille``, ``block`` or ``ascii``; empty for the best the terminal can show.
        mouse: whether the mouse is captured.
        live_seconds: time between two live samples.
        hint: whether the line for the first run is shown.
        keys: keys by id of the action, in place of the default ones.
    """

    theme: str = "dark"
    glyphs: str = ""
    mouse: bool = True
    live_seconds: float = 2.0
    hint: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)


def settings_file() -> Path:
    """Return where the settings are read from."""
    return config_folder() / "settings.yaml"


def load(path: Path) -> Settings:
    """Return the settings in a file, the default ones if there is none.

    Raises:
        CapacityError: the file cannot be read or holds something that is no setting.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise CapacityError("settings cannot be read", str(error), place=Place(str(path))) from error
    return _parse(flat_yaml.read(text, str(path)), str(path))


def _parse(values: Mapping[str, str], file: str) -> Settings:
    keys = {name.removeprefix("keys."): value for name, value in values.items() if name.startswith("keys.")}
    known = {"theme", "glyphs", "mouse", "live_seconds", "hint"}
    if unknown := [name for name in values if name not in known and not name.startswith("keys.")]:
        hint = f"known are {', '.join(sorted(known))}, keys"
        raise CapacityError("unknown setting", unknown[0], hint, Place(file, field=unknown[0]))
    glyphs = values.get("glyphs", "")
    if glyphs and glyphs not in set(Glyphs):
        raise CapacityError("unknown glyphs", glyphs, "braille, block or ascii", Place(file, field="glyphs"))
    return Settings(
        theme=values.get("theme", "dark"),
        glyphs=glyphs,
        mouse=_switch(values, "mouse", file),
        live_seconds=_seconds(values, file),
        hint=_switch(values, "hint", file),
        keys=keys,
    )


def _switch(values: Mapping[str, str], name: str, file: str) -> bool:
    text = values.get(name, "true")
    if text not in {"true", "false"}:
        raise CapacityError("setting is neither true nor false", text, place=Place(file, field=name))
    return text == "true"


def _seconds(values: Mapping[str, str], file: str) -> float:
    text = values.get("live_seconds", "2")
    try:
        seconds = float(text)
    except ValueError as error:
        place = Place(file, field="live_seconds")
        raise CapacityError("interval is not a number of seconds", text, place=place) from error
    return min(max(seconds, FASTEST_SECONDS), SLOWEST_SECONDS)


def save_setting(path: Path, name: str, value: str) -> None:
    """Write one setting into the file, keeping the others; comments in it are lost.

    Raises:
        CapacityError: the file cannot be read or written.
    """
    values = flat_yaml.read(path.read_text(encoding="utf-8"), str(path)) if path.exists() else {}
    make_folder(path.parent)
    write_atomically(path, flat_yaml.write({**values, name: value}), overwrite=True)
