"""Themes, settings and keys as files that people write."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from rich.color import Color as TerminalColor
from rich.color import ColorSystem
from textual.color import Color

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import ACTIONS, bindings, checked_keymap, key_names
from capacity_tui.tui.settings import load, read_toml, save_setting
from capacity_tui.tui.widgets import themes


def theme_text(name: str) -> str:
    return (files("capacity_tui.themes") / f"{name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", themes.BUNDLED)
def test_bundled_theme_is_valid(name: str) -> None:
    theme = themes.load(name, Path("nowhere"))
    assert theme.to_color_system().generate()


@pytest.mark.parametrize("name", [name for name in themes.BUNDLED if name != "ansi"])
def test_colours_look_the_same_with_256_colours(name: str) -> None:
    values = {field: str(value) for field, value in read_toml(theme_text(name), name).items()}
    for field, value in values.items():
        if value.startswith("#"):
            nearest = TerminalColor.parse(value).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
            shift = max(abs(a - b) for a, b in zip(nearest, Color.parse(value).rgb, strict=True))
            # Light greys come out one step darker, whichever is chosen.
            assert shift <= 10, f"{name}: {field}"


@pytest.mark.parametrize(
    ("name", "least"), [("dark", 4.5), ("light", 4.5), ("colour-blind", 4.5), ("high-contrast", 7)]
)
def test_text_is_readable_on_its_background(name: str, least: float) -> None:
    values = {field: str(value) for field, value in read_toml(theme_text(name), name).items()}
    for field in ("foreground", "label", "value", "best", "dim", "success", "warning", "error", "accent", "secondary"):
        for ground in ("background", "cursor"):
            if (field, ground) == ("dim", "cursor") and least < 7:
                continue
            ratio = contrast(Color.parse(values[field]), Color.parse(values[ground]))
            assert ratio >= (least if ground == "background" else 3), f"{name}: {field} on {ground} is {ratio:.1f}"


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color) -> float:
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("change", "field", "title"),
    [
        (('primary = "#87afd7"', 'primary = "bluish"'), "primary", "not a colour"),
        (('primary = "#87afd7"', ""), "primary", "is missing a field"),
        (('primary = "#87afd7"', 'primary = "#87afd7"\nprimry = "#000000"'), "primry", "unknown field"),
    ],
)
def test_wrong_theme_is_refused_with_file_and_field(change: tuple[str, str], field: str, title: str) -> None:
    with pytest.raises(CapacityError, match=title) as caught:
        themes.parse(theme_text("dark").replace(*change), "mine.toml")
    assert caught.value.place.file == "mine.toml"
    assert caught.value.place.field == field


def test_own_theme_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(theme_text("dark").replace('name = "dark"', 'name = "mine"'), encoding="utf-8")
    assert themes.load("mine", tmp_path).name == "capacity-mine"
    assert themes.load(str(path), Path("nowhere")).name == "capacity-mine"


def test_unknown_theme_names_the_known_ones() -> None:
    with pytest.raises(CapacityError, match="colour-blind"):
        themes.load("pink", Path("nowhere"))


MINE = """# what I like
theme = "light"  # by day
mouse = false

[keys]
"edit.undo" = "f5,U"  # as everywhere
"""


def test_settings_are_read_and_changed_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(MINE)
    settings = load(path)
    assert (settings.theme, settings.mouse, settings.keys) == ("light", False, {"edit.undo": "f5,U"})
    save_setting(path, "theme", "dark")
    assert path.read_text() == MINE.replace('"light"', '"dark"')
    save_setting(path, "hint", False)
    assert (load(path).hint, load(path).keys) == (False, {"edit.undo": "f5,U"})


def test_settings_of_an_earlier_version_are_taken_over(tmp_path: Path) -> None:
    old = tmp_path / "settings.yaml"
    old.write_text('theme: light\nhint: false\nkeys:\n  edit.undo: "f5,U"\n')
    settings = load(tmp_path / "settings.toml")
    assert (settings.theme, settings.hint, settings.keys) == ("light", False, {"edit.undo": "f5,U"})
    assert load(tmp_path / "settings.toml") == settings
    assert not old.exists()
    assert "theme: light" in (tmp_path / "settings.yaml.old").read_text()


def test_damaged_settings_of_an_earlier_version_stay(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("theme: [light\n")
    with pytest.raises(CapacityError, match="fix or remove it"):
        load(tmp_path / "settings.toml")
    assert (tmp_path / "settings.yaml").exists()


def test_missing_settings_are_the_default_ones(tmp_path: Path) -> None:
    assert load(tmp_path / "none.toml").theme == "dark"
    (tmp_path / "file").touch()
    assert load(tmp_path / "file" / "settings.toml").theme == "dark"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('colour = "red"\n', "unknown setting: colour"),
        ('mouse = "perhaps"\n', "neither true nor false"),
        ('live_seconds = "soon"\n', "not a number"),
        ("live_seconds = nan\n", "not a number"),
        ('glyphs = "runes"\n', "braille, block or ascii"),
        ("keys = 3\n", "keys is not a table"),
        ("theme light\n", "settings.toml:1"),
        ('theme = "light"\ntheme = "dark"\n', "settings.toml:2"),
    ],
)
def test_wrong_settings_say_what_and_where(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(CapacityError, match=message):
        load(path)


def test_every_action_has_a_name_and_keys_of_its_own() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    checked_keymap({}, "default")
    scopes = {action.scope for action in ACTIONS}
    assert sum(len(bindings(scope)) for scope in scopes) == len(ACTIONS)


def test_no_default_key_is_taken_by_tmux_or_needs_a_new_terminal() -> None:
    eaten = {"ctrl+a", "ctrl+b", "ctrl+s", "ctrl+j", "ctrl+o", "ctrl+l", "ctrl+enter", "shift+enter"}
    assert not eaten & {key for action in ACTIONS for key in action.keys.split(",")}


def test_keys_are_named_as_people_write_them() -> None:
    named = {action.id: key_names(action, {}) for action in ACTIONS}
    assert named["app.help"] == ("?", "f1")
    assert named["value.more"] == ("+", "=")
    assert named["panel.next"] == ("tab",)
    assert named["panel.right"] == ("→", "l")
    assert named["value.much_less"] == ("_",)
    assert named["view.next"] == (">",)
    assert named["app.palette"] == ("^p", ":")


def test_a_name_that_an_action_had_before_still_gives_it_its_key() -> None:
    assert checked_keymap({"screen.back": "f4"}, "settings.toml") == {"view.back": "f4"}


def test_keymap_with_one_key_twice_is_refused() -> None:
    with pytest.raises(CapacityError, match="two actions on one key"):
        checked_keymap({"edit.undo": "q"}, "settings.toml")
    with pytest.raises(CapacityError, match="two actions on one key"):
        checked_keymap({"app.quit": "B"}, "settings.toml")
