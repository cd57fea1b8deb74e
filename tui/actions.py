"""Every key of the screen, once: bindings, footer, help and palette are made from this list.

What an action does is said where it is heard: a ``Commanded`` screen, panel or program has a command for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from textual.binding import Binding, BindingType
from textual.keys import key_to_character
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
VIEWS = {"plan": "p", "find": "f", "cloud": "c", "run": "r", "scale": "s", "cluster": "l", "machine": "m"}
"""The views of the plan in order, each with its key in the strip that lists them."""

PANELS = ("hardware", "config", "plans", "why", "live", "advice")
QUERY_PANELS = ("question", "found")
SCALE_PANELS = ("devices", "storage", "corpus", "levels")
RUN_PANELS = ("runs", "curves", "usage", "events")
CLUSTER_PANELS = ("nodes", "placement", "queue")
QUERY_VIEWS = ("find", "cloud")  # Views with a question, and rows that answer it


def _panel_actions(view: str, panels: tuple[str, ...]) -> tuple[Action, ...]:
    return tuple(
        Action(f"panel.{name}", view, str(number), f"Go to panel {number} {name.capitalize()}", "Panels")
        for number, name in enumerate(panels, start=1)
    )


_VIEW_ACTIONS = tuple(
    Action(f"view.{name}", "views", key, f"View: {name.capitalize()}", "Views") for name, key in VIEWS.items()
)

ACTIONS: tuple[Action, ...] = (
    Action("app.help", "app", "question_mark,f1", "Show all keys", "Program", "help"),
    Action("app.quit", "app", "q", "Quit", "Program", "quit"),
    Action("app.start", "app", "i", "Say in one line what you want to run", "Program", "new"),
    Action("app.palette", "app", "ctrl+p,colon", "Find a command", "Program", "commands"),
    Action("view.choose", "app", "space", "List the views", "Views", "views"),
    Action("view.next", "app", "greater_than_sign", "Next view", "Views"),
    Action("view.previous", "app", "less_than_sign", "Previous view", "Views"),
    Action("view.back", "view", "escape", "Stop what runs, leave the zoom, or go back to Plan", "Views"),
    *_VIEW_ACTIONS,
    *_panel_actions("plan", PANELS),
    *_panel_actions("asking", QUERY_PANELS),
    *_panel_actions("scale", SCALE_PANELS),
    *_panel_actions("run", RUN_PANELS),
    *_panel_actions("cluster", CLUSTER_PANELS),
    Action("panel.offer", "cloud", "3", "Go to panel 3 Offer", "Panels"),
    Action("panel.next", "plan", "tab", "Go to the next panel", "Panels"),
    Action("panel.previous", "plan", "shift+tab", "Go to the previous panel", "Panels"),
    Action("panel.right", "plan", "right,l", "Go to the panel on the right", "Panels"),
    Action("panel.left", "plan", "left,h", "Go to the panel on the left", "Panels"),
    Action("panel.zoom", "plan", "z", "Zoom this panel, or show all again", "Panels"),
    Action("cursor.up", "panel", "up,k", "Up", "Moving"),
    Action("cursor.down", "panel", "down,j", "Down", "Moving"),
    Action("cursor.page_up", "panel", "pageup", "One page up", "Moving"),
    Action("cursor.page_down", "panel", "pagedown", "One page down", "Moving"),
    Action("cursor.first", "panel", "g,home", "To the first line", "Moving"),
    Action("cursor.last", "panel", "G,end", "To the last line", "Moving"),
    Action("find.start", "plan", "slash", "Find a field or a figure as you type", "Moving"),
    Action("find.next", "plan", "n", "Next match", "Moving"),
    Action("find.previous", "plan", "N", "Previous match", "Moving"),
    Action("value.more", "config", "plus,equals_sign", "Step up", "Editing", "+/- step"),
    Action("value.less", "config", "minus", "Step down", "Editing"),
    Action("value.much_more", "config", "asterisk", "Big step up", "Editing"),
    Action("value.much_less", "config", "underscore", "Big step down", "Editing"),
    Action("value.type", "config", "e,enter", "Type or pick a value", "Editing", "edit"),
    Action("fields.all", "config", "full_stop", "All fields, or those that matter for this plan", "Editing", "all"),
    Action(
        "value.limit",
        "config",
        "M",
        "Raise it to the largest that fits; on the model, the largest that fit here",
        "Editing",
        "limit",
    ),
    Action("map.show", "plan", "number_sign", "Heat map of two fields: memory or time", "Editing", "map"),
    Action("value.auto", "config", "backspace", "Back to auto: the modes choose it", "Editing", "auto"),
    Action("edit.undo", "view", "u", "Undo", "Editing", "undo"),
    Action("edit.redo", "view", "ctrl+r", "Redo", "Editing", "redo"),
    Action("column.next", "plan", "c", "Choose the next column", "Plans"),
    Action("column.right", "plans", "right,l", "Choose the column on the right", "Plans"),
    Action("column.left", "plans", "left,h", "Choose the column on the left", "Plans"),
    Action("baseline.column", "plan", "x", "Use this column as the baseline", "Plans"),
    Action("baseline.pin", "plan", "b", "Use the current numbers as the baseline", "Plans"),
    Action("pin.toggle", "plan", "P", "Pin the chosen column beside the plan, or unpin it", "Plans"),
    Action("pin.rename", "plan", "R", "Rename the pinned column", "Plans"),
    Action("plans.enter", "plans", "enter", "Explain the number, or load the pinned plan", "Plans"),
    Action("plans.sort", "plan", "s", "Sort plans by the row under the cursor, or unsort them", "Plans"),
    Action("why.follow", "why", "enter", "Open the number under the cursor, or show it in full", "Plans"),
    Action("why.back", "why", "backspace,escape", "Back to the previous number", "Plans"),
    Action("why.pictures", "plan", "v", "Charts: memory, time and roofline", "Plans"),
    Action("advice.apply", "plan", "a", "Apply advice: the first, or the one under the cursor", "Advice", "advice"),
    Action("advice.take", "advice", "enter", "Apply the advice under the cursor", "Advice"),
    Action("found.take", "found", "enter", "Apply the row under the cursor to the plan", "Finding plans", "apply"),
    Action("found.pin", "asking", "P", "Pin the row, or all marked rows, beside the plan", "Finding plans", "pin"),
    Action("found.sort", "asking", "s", "Sort by the next column", "Finding plans", "sort"),
    Action("found.reverse", "asking", "S", "Reverse the order", "Finding plans"),
    Action("found.filter", "asking", "slash", "Filter the rows", "Finding plans", "filter"),
    Action("found.mark", "asking", "x", "Mark or unmark the row", "Finding plans", "mark"),
    Action("found.export", "cloud", "E", "Export the offers: Markdown, CSV, JSON, YAML, a page", "Clouds", "export"),
    Action("cloud.recommendations", "cloud", "r", "The verdict and the recommendations in full", "Clouds", "verdict"),
    Action("found.rules", "find", "r", "What was excluded and why, with examples", "Finding plans", "rules"),
    Action("found.front", "asking", "v", "Zoom the panel beside the rows", "Finding plans", "aside"),
    Action("found.beside", "asking", "tab,shift+tab", "To the question or the rows", "Finding plans", "question"),
    Action("question.type", "question", "e,enter", "Type or pick a value", "Finding plans", "edit"),
    Action("question.more", "question", "plus,equals_sign", "Next choice", "Finding plans", "+/- step"),
    Action("question.less", "question", "minus", "Previous choice", "Finding plans"),
    Action("question.clear", "question", "backspace", "Reset to its default", "Finding plans", "clear"),
    Action("question.right", "question", "right,l", "The panel on the right", "Finding plans"),
    Action("question.left", "question", "left,h", "The panel on the left", "Finding plans"),
    Action("question.copy", "asking", "y", "Copy the equivalent command", "Finding plans", "command"),
    Action("found.copy", "asking", "Y", "Copy the rows", "Finding plans"),
    Action("scale.take", "devices", "enter", "Apply the device count under the cursor to the plan", "Scaling", "apply"),
    Action("scale.pin", "devices", "P", "Pin the row beside the plan", "Scaling", "pin"),
    Action("run.take", "runs", "enter", "Load the run's plan", "Runs", "load"),
    Action("run.pin", "run", "P", "Pin the run's plan beside the plan", "Runs", "pin"),
    Action("run.calibrate", "runs", "k", "Calibrate estimates with this run", "Runs", "calibrate"),
    Action("run.restore", "runs", "K", "Undo the last calibration", "Runs"),
    Action("run.pause", "run", "full_stop", "Pause or resume the view", "Runs", "pause"),
    Action("run.newer", "run", "plus,equals_sign", "Zoom in on the newest part of the curves", "Runs", "+/- zoom"),
    Action("run.older", "run", "minus", "Zoom out of the curves", "Runs"),
    Action("run.zoom", "run", "z", "Zoom this panel, or show all again", "Runs", "alone"),
    Action("run.next", "run", "tab", "Go to the next panel", "Runs"),
    Action("run.previous", "run", "shift+tab", "Go to the previous panel", "Runs"),
    Action("run.copy", "run", "Y", "Copy the runs", "Runs"),
    Action(
        "scale.growth",
        "devices",
        "tab,shift+tab",
        "Strong or weak scaling: same batch, or one per device",
        "Scaling",
        "strong/weak",
    ),
    Action("scale.beside", "scale", "tab,shift+tab", "To the next panel", "Scaling"),
    Action("scale.pictures", "scale", "v", "Zoom the charts, or show the rows again", "Scaling", "picture"),
    Action("scale.command", "levels", "y", "Copy the equivalent command", "Scaling", "command"),
    Action("scale.copy", "scale", "Y", "Copy the rows", "Scaling"),
    Action("cluster.take", "nodes", "enter", "Plan for the nodes that are free now", "Cluster", "use free nodes"),
    Action("cluster.pin", "nodes", "P", "Pin the plan for the free nodes beside the plan", "Cluster", "pin"),
    Action("cluster.finer", "cluster", "plus,equals_sign", "Finer: a row for each node", "Cluster", "+/- finer"),
    Action("cluster.coarser", "cluster", "minus", "Coarser: a row for each rack or kind", "Cluster"),
    Action("cluster.next", "cluster", "tab", "Go to the next panel", "Cluster"),
    Action("cluster.previous", "cluster", "shift+tab", "Go to the previous panel", "Cluster"),
    Action("cluster.copy", "cluster", "Y", "Copy the rows of the panel", "Cluster"),
    *(
        Action(f"{view}.picture", view, "E", "Export this chart: SVG, PNG", "Files", "export")
        for view in ("find", "scale", "run", "cluster", "machine")
    ),
    Action("copy.plan", "plan", "y", "Copy the chosen plan as YAML", "Files"),
    Action("copy.table", "plan", "Y", "Copy the table of plans", "Files"),
    Action("file.save", "plan", "w", "Save the plan", "Files", "save"),
    Action("file.save_as", "plan", "S", "Save the plan under another name", "Files"),
    Action("file.open", "plan", "o", "Open a plan", "Files", "open"),
    Action("file.restore", "plan", "O", "Restore the unsaved changes of the last session", "Files"),
    Action("file.export", "plan", "E", "Export the chosen plan: files, one command, reports", "Files", "export"),
    Action("hardware.simulate", "plan", "H", "Plan for other hardware", "Hardware", "simulate"),
    Action("hardware.enter", "hardware", "enter", "Plan for other hardware", "Hardware"),
    Action("hardware.back", "hardware", "backspace", "Back to this machine's hardware", "Hardware"),
    Action("machine.show", "app", "m", "Show and measure this machine", "Hardware"),
    Action("machine.benchmark", "machine", "B", "Measure this machine", "Hardware", "measure"),
    Action("heading.next", "machine", "tab", "Next heading", "Moving", "headings"),
    Action("heading.previous", "machine", "shift+tab", "Previous heading", "Moving"),
    Action("machine.copy", "machine", "y", "Copy what is known about this machine", "Hardware", "copy"),
    Action("live.pause", "plan", "comma,full_stop", "Pause or resume the live graphs", "Live"),
    Action("live.slower", "plan", "left_square_bracket", "Sample less often", "Live"),
    Action("live.faster", "plan", "right_square_bracket", "Sample more often", "Live"),
    Action("error.show", "app", "exclamation_mark", "Show the last error in full", "Program"),
    Action("app.theme", "app", "t", "Next theme", "Program"),
    Action("app.suspend", "app", "ctrl+z", "Suspend to the shell; fg resumes", "Program"),
)

RENAMED = {"screen.back": "view.back", "machine.back": "view.back", "plans.explain": "plans.enter"}
"""Names that settings files may still have, and what they are called now."""

_KEY_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "minus": "-",
    "plus": "+",
    "slash": "/",
    "escape": "esc",
    "equals_sign": "=",
    "underscore": "_",
}


def bindings(scope: str) -> list[BindingType]:
    """Return the bindings that are heard in one place; what a panel's keys do is the screen's to know."""
    performs = (
        "screen.perform"
        if scope in (*PANELS, *QUERY_PANELS, *RUN_PANELS, *SCALE_PANELS, *CLUSTER_PANELS)
        else "perform"
    )
    return [
        Binding(action.keys, f"{performs}('{action.id}')", action.title, id=action.id, show=bool(action.footer))
        for action in ACTIONS
        if action.scope == scope
    ]


_TO_THE_END = 100_000  # Lines
_MOVES = (
    ("up,k", "move(-1)", "Up"),
    ("down,j", "move(1)", "Down"),
    ("g,home", f"move(-{_TO_THE_END})", "First"),
    ("G,end", f"move({_TO_THE_END})", "Last"),
)
_LISTED = (("up,ctrl+p", "move(-1)", "Up"), ("down,ctrl+n", "move(1)", "Down"))
_WITH_ENTRY = ("start", "picker", "trials")  # Dialogs that take their keys, but for escape, before the line typed into
DIALOGS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "text": (
        ("escape,question_mark,f1", "dismiss", "Close"),
        *_MOVES,
        ("pageup", "scroll_page(-1)", "One page up"),
        ("pagedown", "scroll_page(1)", "One page down"),
        ("y", "copy", "Copy"),
        ("E", "export", "Export as pictures"),
    ),
    "export": (("escape,q", "dismiss(None)", "Cancel"), *_MOVES, ("enter", "write", "Write"), ("y", "copy", "Copy")),
    "picker": (
        ("escape", "leave", "Cancel"),
        *_LISTED,
        ("pageup", "move(-10)", "Ten up"),
        ("pagedown", "move(10)", "Ten down"),
    ),
    "trials": (("tab", "sort", "Sort"),),
    "start": (("escape", "leave", "Go to the plan"), ("tab", "complete", "Complete"), *_LISTED),
    "map": (
        ("escape,q", "dismiss(None)", "Cancel"),
        ("left,h", "move(-1, 0)", "Left"),
        ("right,l", "move(1, 0)", "Right"),
        ("up,k", "move(0, -1)", "Up"),
        ("down,j", "move(0, 1)", "Down"),
        ("enter", "take", "Take"),
        ("tab", "turn", "Memory or time"),
        ("E", "export", "Export as a picture"),
        ("x", "pick(0)", "Field across"),
        ("y", "pick(1)", "Field down"),
    ),
    "prompt": (("escape", "withdraw", "Cancel"),),
}
"""Keys of dialogs, which settings leave as they are: keys, the dialog's own action, and what that does."""


def dialog_bindings(dialog: str) -> list[BindingType]:
    return [
        Binding(keys, action, title, priority=dialog in _WITH_ENTRY and keys != "escape")
        for keys, action, title in DIALOGS[dialog]
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
