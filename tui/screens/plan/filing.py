"""Files and the clipboard: saving, opening, exporting, copying."""

from __future__ import annotations

import os
from pathlib import Path

from capacity_tui.engine.api import CapacityError, config_folder, make_folder, storage_error, write_atomically
from capacity_tui.tui.screens.dialogs.picker import PATH, Picker
from capacity_tui.tui.screens.plan.comparison import ComparisonTable
from capacity_tui.tui.screens.plan.editing import Editing
from capacity_tui.tui.settings import save_setting, settings_file
from capacity_tui.tui.swap import LeftBehind
from capacity_tui.tui.view import Choice

_LATER, _DISCARD = "decide later", "throw away"


class Filing(Editing):
    """The plan screen's actions on files."""

    _asked_to_replace: Path | None = None
    _asked_to_leave = -1

    # Saving and exporting

    def action_save(self) -> None:
        """Save the plan where it came from, or ask where to."""
        document, path = self.store.document, self.store.path
        if document is None:
            return
        if path is None:
            self.action_save_as()
        elif refusal := self._save(path, document.dump()):
            self.say(refusal, "bad")

    def action_save_as(self) -> None:
        """Ask where to save the plan."""
        document, engine = self.store.document, self.room.loaded
        if document is None or engine is None:
            return
        start = self.store.path or engine.plans_folder() / f"{document.name}.yaml"

        def answer(text: str) -> str:
            path = _path(text, start.parent)
            return self._may_write(text, path) or self._save(path, document.dump())

        self._asked_to_replace = None
        self.ask("Save the plan as", _shortened(start), answer)

    def action_export(self) -> None:
        """Ask where to write the chosen plan with everything chosen."""
        chosen = self._chosen()
        if chosen is None:
            return
        name, mode, text_of_plan = chosen

        def answer(text: str) -> str:
            path = _path(text, Path.cwd())
            refusal = self._may_write(text, path) or self._write(path, text_of_plan)
            if not refusal:
                self.say(f"exported to {path}", "good")
            return refusal

        self._asked_to_replace = None
        self.ask(f"Export the {mode} plan to", f"{name}-{mode}.yaml", answer)

    def _chosen(self) -> tuple[str, str, str] | None:
        """Return name, mode and text of the chosen plan; say why there is none."""
        document, column = self.store.document, self.store.column
        if document is None or column is None or self.store.is_stale:
            self.say("there are no numbers of this plan yet; nothing was written", "warn")
            return None
        try:
            return document.name, column.mode, document.dump(column.mode)
        except CapacityError as error:
            self.say(error.one_line(), "bad")
            return None

    def _write(self, path: Path, text: str) -> str:
        """Write a file; return why that failed, or an empty text."""
        try:
            make_folder(path.parent)
            write_atomically(path, text, overwrite=True)
        except CapacityError as error:
            return error.one_line()
        return ""

    def _may_write(self, text: str, path: Path) -> str:
        """Return why a file cannot be written, what the same answer again must confirm, or an empty text."""
        if text.endswith("/") or not Path(text).name.strip("."):
            return "type the name of a file"
        try:
            if path.is_dir():
                return f"{path} is a folder; name a file in it"
            is_new = not path.exists()
        except OSError as error:
            return storage_error(error, path, "cannot be written").one_line()
        if is_new or path == self._asked_to_replace:
            return ""
        self._asked_to_replace = path
        return f"{path} exists; enter once more replaces it"

    def _save(self, path: Path, text: str) -> str:
        """Save the plan to a file; return why that failed, or an empty text."""
        try:
            aside = self.room.engine().save(path, text)
        except CapacityError as error:
            return error.one_line()
        self.store.mark_saved(path)
        self.keep_unsaved()
        self.show_fields()
        kept = f"; the damaged file that was there is kept as {aside.name}" if aside else ""
        self.say(f"saved to {path}{kept}", "good")
        return ""

    # Opening

    def action_open(self) -> None:
        """Pick a plan to open."""

        def read() -> tuple[Choice, ...]:
            return self.room.engine().catalogue("profile")

        def picked(choice: str | None) -> None:
            if choice is None:
                return
            path = _expanded(choice)
            if path.suffix in {".yaml", ".yml"} or "/" in choice:
                self.read_plan(path, path)
            else:
                self.read_plan(choice, None)

        self.app.push_screen(Picker("Open a plan", read, typed=PATH), picked)

    # What earlier runs left behind

    def offer(self, found: tuple[LeftBehind, ...]) -> None:
        """Ask what to do with edits that were not saved when the program ended."""

        def read() -> tuple[Choice, ...]:
            plans = (
                Choice(str(index), f"restore {', '.join(plan.name for plan in kept.plans)}", _described(kept))
                for index, kept in enumerate(found)
            )
            return (*plans, Choice(_LATER, _LATER, "at the next start"), Choice(_DISCARD, _DISCARD, "for good"))

        def picked(choice: str | None) -> None:
            for index, kept in enumerate(found):
                if choice == str(index):
                    self.restore(kept)
                elif choice == _DISCARD:
                    kept.discard()
                else:
                    kept.leave()

        self.app.push_screen(Picker("Not saved when the program ended", read), picked)

    # Copying

    def action_copy_plan(self) -> None:
        """Copy the chosen plan as YAML."""
        chosen = self._chosen()
        if chosen is not None:
            self.copy_text(chosen[2], "copied.yaml")

    def action_copy_table(self) -> None:
        """Copy the table of plans."""
        if self.store.is_stale or self.store.comparison is None:
            self.say("the table shows an earlier plan; nothing was copied", "warn")
        else:
            self.copy_text(self.query_one(ComparisonTable).as_text())

    def copy_text(self, text: str, name: str = "copied.txt") -> None:
        """Copy a text through the terminal, and put it into a file since the terminal may refuse."""
        self.app.copy_to_clipboard(text)
        path = config_folder() / name
        refusal = self._write(path, text)
        self.say(
            refusal or f"written to {_shortened(path)}; copied too if the terminal allows it",
            "bad" if refusal else "good",
        )

    # Leaving and remembering

    def may_leave(self) -> bool:
        """Return whether the program may end: nothing is unsaved, or it was asked for twice."""
        if not self.store.unsaved or self._asked_to_leave == self.store.revision:
            return True
        self._asked_to_leave = self.store.revision
        self.say("not saved: s saves, q once more quits", "warn")
        return False

    def remember(self, name: str, value: str | bool) -> None:
        """Write a setting down, and say so where that fails."""
        try:
            save_setting(settings_file(), name, value)
        except CapacityError as error:
            self.say(error.one_line(), "bad")


def _described(kept: LeftBehind) -> str:
    when = f"{kept.kept_at:%Y-%m-%d %H:%M}"
    return ", ".join([when, *(_shortened(Path(plan.path)) for plan in kept.plans if plan.path)])


def _expanded(text: str) -> Path:
    """Return a path that was typed, with ``~`` replaced where such a user is known."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - the method raises for a user nobody knows


def _path(text: str, folder: Path) -> Path:
    """Return the path that was typed; a bare name lies in the folder, and YAML is the format."""
    path = _expanded(text)
    path = path if path.suffix or not path.name else path.with_suffix(".yaml")
    return path if "/" in text else folder / path


def _shortened(path: Path) -> str:
    home = str(_expanded("~"))
    return str(path).replace(home, "~", 1) if str(path).startswith(home + "/") else str(path)
