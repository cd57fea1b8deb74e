"""Settings of the screen and the plans of the last days, kept for the next start, and paths as people type them."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, field
from pathlib import Path

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.files import make_folder, set_aside, state_folder, typed_path, write_atomically
from capacity_tui.engine.record import dataclass
from capacity_tui.tui.text import Glyphs

SLOWEST_SECONDS = 60.0
FASTEST_SECONDS = 0.5  # Reading the sensors more often slows the job that is being watched


def plan_path(text: str, folder: Path) -> Path:
    """Return the path that was typed for a plan; a bare name lies in the folder, and YAML is the format."""
    path = typed_path(text)
    path = path if path.suffix or not path.name else path.with_suffix(".yaml")
    return path if "/" in text else folder / path


def shortened(path: Path) -> str:
    home = str(typed_path("~"))
    return str(path).replace(home, "~", 1) if str(path).startswith(home + "/") else str(path)


def write_file(path: Path, text: str | bytes) -> str:
    """Write a file in place of what was there; return why that failed, or an empty text."""
    try:
        make_folder(path.parent)
        write_atomically(path, text, overwrite=True)
    except CapacityError as error:
        return error.one_line()
    return ""


_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def read_toml(text: str, file: str) -> dict[str, object]:
    """Return the values of a TOML text; CapacityError with the line that is no TOML, or a key that stands twice."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _LINE.search(str(error))
        place = Place(file, int(match[1])) if match else Place(file)
        raise CapacityError(_LINE.sub("", str(error)), hint='write `key = "value"`', place=place) from error


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose once and for all."""

    theme: str = "dark"  # name of a theme, or a path of a theme file
    glyphs: str = ""  # ``braille``, ``block`` or ``ascii``; empty for the best the terminal can show
    mouse: bool = True  # whether the mouse is captured
    live_seconds: float = 2.0  # time between two live samples
    hint: bool = True  # whether the guided start of five keys is still to come
    start: bool = True  # whether the program asks what is wanted where it is started without a plan
    history: str = ""  # another file or a MongoDB URI for the history of runs, or ``off``; empty for the usual file
    keys: Mapping[str, str] = field(default_factory=dict)  # keys by id of the action, in place of the default ones


def load(path: Path) -> Settings:
    """Return the settings in a file, the default ones if there is none.

    Settings that an earlier version kept as YAML beside it are taken over first.

    Raises:
        CapacityError: the file cannot be read or holds something that is no setting.
    """
    old = path.with_suffix(".yaml")
    if not path.exists() and old.is_file():
        _take_over(old, path)
    text = _text_of(path)
    return Settings() if text is None else _parse(read_toml(text, str(path)), str(path))


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CapacityError("settings cannot be read", str(error), place=Place(str(path))) from error


def _parse(values: Mapping[str, object], file: str) -> Settings:
    known = {"theme", "glyphs", "mouse", "live_seconds", "hint", "start", "history", "keys"}
    if unknown := [name for name in values if name not in known]:
        hint = f"known are {', '.join(sorted(known))}"
        raise CapacityError("unknown setting", unknown[0], hint, Place(file, field=unknown[0]))
    glyphs = str(values.get("glyphs", ""))
    if glyphs and glyphs not in set(Glyphs):
        raise CapacityError("unknown glyphs", glyphs, "braille, block or ascii", Place(file, field="glyphs"))
    keys = values.get("keys", {})
    if not isinstance(keys, Mapping):
        raise CapacityError(
            "keys is not a table", str(keys), '[keys], then "edit.undo" = "f5"', Place(file, field="keys")
        )
    return Settings(
        theme=str(values.get("theme", "dark")),
        glyphs=glyphs,
        mouse=_switch(values, "mouse", file),
        live_seconds=_seconds(values, file),
        hint=_switch(values, "hint", file),
        start=_switch(values, "start", file),
        history=_history(values, file),
        keys={str(name): str(key) for name, key in keys.items()},
    )


def _switch(values: Mapping[str, object], name: str, file: str) -> bool:
    value = values.get(name, True)
    if not isinstance(value, bool):
        raise CapacityError("setting is neither true nor false", str(value), place=Place(file, field=name))
    return value


def _history(values: Mapping[str, object], file: str) -> str:
    value = values.get("history", True)
    if value is True:
        return ""
    if value is False:
        from capacity_tui.engine.runs.history import OFF as HISTORY_OFF

        return HISTORY_OFF
    if not isinstance(value, str):
        place = Place(file, field="history")
        raise CapacityError("history is not a location", str(value), "a file, a MongoDB URI, true or false", place)
    return value


def _seconds(values: Mapping[str, object], file: str) -> float:
    seconds = values.get("live_seconds", 2.0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        place = Place(file, field="live_seconds")
        raise CapacityError("interval is not a number of seconds", str(seconds), place=place)
    return min(max(float(seconds), FASTEST_SECONDS), SLOWEST_SECONDS)


def save_setting(path: Path, name: str, value: str | bool) -> None:
    """Write one setting into the file; everything else in it, comments included, stays as it is.

    Raises:
        CapacityError: the file cannot be read or written.
    """
    import tomlkit

    text = _text_of(path) or ""
    read_toml(text, str(path))
    document = tomlkit.parse(text)
    document[name] = value
    make_folder(path.parent)
    write_atomically(path, tomlkit.dumps(document), overwrite=True)


def _take_over(old: Path, path: Path) -> None:
    """Write the settings of an earlier version anew, and keep its file aside."""
    import tomlkit
    import yaml

    try:
        document = yaml.safe_load(_text_of(old) or "")
    except yaml.YAMLError as error:
        raise CapacityError("settings cannot be read", str(error), "fix or remove it", Place(str(old))) from error
    if not isinstance(document, dict):
        raise CapacityError("settings is not a table", hint="fix or remove it", place=Place(str(old)))
    write_atomically(path, tomlkit.dumps({str(name): value for name, value in document.items()}), overwrite=False)
    old.replace(old.with_suffix(".yaml.old"))


MOST = 12
_LONGEST = 1000
_LARGEST_FILE = 1 << 20
_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class RecentPlan:
    """Something that was planned."""

    text: str  # the line that was typed, or the path of the file
    is_file: bool  # which of both it is
    words: str = ""  # what it was, in a few words


def recent_file() -> Path:
    """Return where they are kept."""
    return state_folder() / "recent.json"


def recent_plans() -> tuple[RecentPlan, ...]:
    """Return them, the last first; a damaged file is set aside and holds none."""
    import json  # not before the first frame

    file = recent_file()
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise ValueError("too large to be a saved file")
        return tuple(_plan(entry) for entry in json.loads(file.read_text(encoding="utf-8")))
    except OSError:
        return ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        with suppress(StorageError):
            set_aside(file)
        return ()


def remember_plan(plan: RecentPlan) -> None:
    """Put a plan in front of the others; raises StorageError where that cannot be written."""
    import json  # not before the first frame

    if len(plan.text) > _LONGEST:
        return
    with _TURN:
        others = (other for other in recent_plans() if (other.text, other.is_file) != (plan.text, plan.is_file))
        kept = [plan, *others][:MOST]
        make_folder(recent_file().parent)
        write_atomically(recent_file(), json.dumps([asdict(entry) for entry in kept]), overwrite=True)


def _plan(entry: dict[str, object]) -> RecentPlan:
    text, is_file, words = entry["text"], entry["is_file"], entry["words"]
    if not isinstance(text, str) or not isinstance(is_file, bool) or not isinstance(words, str):
        raise ValueError("a recent plan is text")
    return RecentPlan(text, is_file, words)
