"""Every key of the screen, once: bindings, footer, help and palette are made from this list, and the guided start.

What an action does is said where it is heard: a ``Commanded`` screen, panel or program has a command for each.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from textual.binding import Binding, BindingType
from textual.keys import KEY_DISPLAY_ALIASES, key_to_character
from textual.message_pump import MessagePump

from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.record import dataclass

Commands = Mapping[str, Callable[[], object]]  # What actions do, by their ids


class Commanded(MessagePump):
    """Hears actions of the list, and does what its commands say."""

    commands: Commands  # what it does
    topic: str = ""  # what the help tells about while it is shown

    def about(self) -> tuple[str, str]:
        """Return what is under the cursor and what it means, for the help; empty texts for nothing."""
        return "", ""

    def action_perform(self, name: str) -> None:
        self.commands[name]()


@dataclass(frozen=True, slots=True)
class Action:
    """Something a key does."""

    id: str  # name under which the settings file gives it other keys
    # where the keys are heard: ``app``, ``view`` (every view), one view such as ``plan`` or ``machine``, ``asking``
    # (views with a question, and rows that answer it), ``panel`` (every panel), one panel, such as ``config`` or
    # ``plans``; or ``views``, the strip that lists the views
    scope: str
    keys: str  # keys as Textual names them, separated by commas
    title: str  # what it does, for help and palette
    group: str  # heading in the help
    footer: str = ""  # short name in the footer, empty to leave it out


FIGURE = "figure:"  # What stands before the key of a figure where a click explains that instead of doing an action
QUERY_VIEWS = ("find", "cloud")  # Views with a question, and rows that answer it


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of comma-separated values: the first frame waits least for these."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


_HERE = Path(__file__).parent
ACTIONS = tuple(Action(**row) for row in read_table(_HERE / "actions.csv"))
VIEWS = {action.id.partition(".")[2]: action.keys for action in ACTIONS if action.scope == "views"}
"""The views of the plan in order, each with its key in the strip that lists them."""
PANELS = {action.id.partition(".")[2]: action.scope for action in ACTIONS if action.keys.isdigit()}
"""The panels by name, which digits lead to, with where these are heard."""
_DIALOGS = read_table(_HERE / "dialogs.csv")

RENAMED = {"screen.back": "view.back", "machine.back": "view.back", "plans.explain": "plans.enter"}
"""Names that settings files may still have, and what they are called now."""

_SHOWN_AS_USUAL = ("up", "down", "left", "right", "pageup", "pagedown", "minus", "escape")
"""Keys that are shown as Textual does; its signs for others are not in every font."""
_KEY_NAMES = {
    **{key: KEY_DISPLAY_ALIASES[key] for key in _SHOWN_AS_USUAL},
    "plus": "+",
    "slash": "/",
    "underscore": "_",
}


def bindings(scope: str) -> list[BindingType]:
    """Return the bindings that are heard in one place; what a panel's keys do is the screen's to know."""
    performs = "screen.perform" if scope in PANELS else "perform"
    return [
        Binding(action.keys, f"{performs}('{action.id}')", action.title, id=action.id, show=bool(action.footer))
        for action in ACTIONS
        if action.scope == scope
    ]


_WITH_ENTRY = ("start", "picker", "trials")  # Dialogs that take their keys, but for escape, before the line typed into


def dialog_bindings(dialog: str) -> list[BindingType]:
    """Return the keys of a dialog, which settings leave as they are, with its own actions."""
    return [
        Binding(row["keys"], row["action"], row["title"], priority=dialog in _WITH_ENTRY and row["keys"] != "escape")
        for row in _DIALOGS
        if row["dialog"] == dialog
    ]


def key_codes(action: Action, keymap: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(key.strip() for key in keymap.get(action.id, action.keys).split(","))


def key_names(action: Action, keymap: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(map(_key_name, key_codes(action, keymap)))


_NAMED = re.compile(r"\{([a-z]+\.[a-z_]+)(:last)?\}")


def with_keys(text: str, keymap: Mapping[str, str]) -> str:
    """Return a text with keys for actions in braces: the first of ``{edit.undo}``, the last of ``{edit.undo:last}``."""

    def key(match: re.Match[str]) -> str:
        action = next((action for action in ACTIONS if action.id == match[1]), None)
        return key_names(action, keymap)[-1 if match[2] else 0] if action else match[0]

    return _NAMED.sub(key, text)


def checked_keymap(keymap: Mapping[str, str], file: str) -> dict[str, str]:
    """Return a keymap with the names that actions have now, if it would work.

    Args:
        keymap: keys by id of the action.
        file: where it stands, for the error message.

    Raises:
        CapacityError: an id nobody knows, or two actions on one key that are heard in the same place.
    """
    known = {action.id for action in ACTIONS}
    keymap = {RENAMED.get(name, name): keys for name, keys in keymap.items()}
    for name in keymap:
        if name not in known:
            hint = "the help lists the names of all actions"
            raise CapacityError("unknown action", name, hint, Place(file, field=f"keys.{name}"))
    taken: dict[tuple[str, str], Action] = {}
    for action in ACTIONS:
        for key in key_names(action, keymap):
            for place in _places(action.scope):
                other = taken.setdefault((place, key), action)
                if other is not action:
                    raise CapacityError(
                        "two actions on one key",
                        f"{key} for {other.id} and {action.id}",
                        place=Place(file, field="keys"),
                    )
    return keymap


def enter_action(scope: str) -> str:
    """Return the id of what the enter key does in a panel, empty for nothing."""
    return next((action.id for action in ACTIONS if action.scope == scope and "enter" in action.keys.split(",")), "")


def heard_in(view: str) -> frozenset[str]:
    """Return the scopes whose keys are heard in a view, whatever panel has the focus."""
    return frozenset(("app", "view", view, *(("asking",) if view in QUERY_VIEWS else ())))


def _places(scope: str) -> tuple[str, ...]:
    """Return where keys of a scope are heard: in some views, or in a panel."""
    return tuple(view for view in VIEWS if scope in heard_in(view)) or (scope,)


def _key_name(key: str) -> str:
    if len(key) == 1 or key in _KEY_NAMES:
        return _KEY_NAMES.get(key, key)
    modifier, plus, rest = key.rpartition("+")
    if plus and modifier:
        return ("^" if modifier == "ctrl" else f"{modifier}-") + _key_name(rest)
    character = key_to_character(key)
    return character if character and character.isprintable() and character != " " else key


ADVICE_APPLIED = "advice.applied"  # What `a` counts as where there was advice to apply


_STEPS = read_table(_HERE / "guide.csv")
"""Keys to try: actions of which any does it, what to do and what comes of it, the same where there is no room, and the
view that the key does this in, if it is but one; actions in braces stand for their keys."""


class Guide:
    """Says which key to try next, where that was not seen yet."""

    def __init__(self, is_wanted: bool) -> None:
        self._at = 0 if is_wanted else len(_STEPS)
        self._is_done = False

    @property
    def is_over(self) -> bool:
        return self._at == len(_STEPS)

    @property
    def has_begun(self) -> bool:
        return self._at > 0 or self._is_done

    def wordings(self, *, on_plan: bool) -> tuple[str, ...]:
        """Return what to try now, the longest wording first; nothing while one still looks at what came of it."""
        if self.is_over or self._is_done:
            return ()
        step = _STEPS[self._at]
        if step["view"] and not on_plan:
            return ()
        return tuple(f"{self._at + 1} of {len(_STEPS)}: {text}" for text in (step["text"], step["brief"]))

    def take(self, action: str) -> None:
        self._is_done |= not self.is_over and action in _STEPS[self._at]["actions"].split()

    def go_on(self) -> bool:
        """Go on to the next key once another came, and return whether that ends it."""
        if not self._is_done:
            return False
        self._at, self._is_done = self._at + 1, False
        return self.is_over

    def end(self) -> None:
        self._at, self._is_done = len(_STEPS), False
