"""Saving, exporting and copying the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from capacity_tui.engine.api import CapacityError, storage_error
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.exported import Export
from capacity_tui.tui.paths import expanded, plan_path, shortened, write_file
from capacity_tui.tui.screens.plan.comparison import ComparisonTable
from capacity_tui.tui.session import Session
from capacity_tui.tui.widgets.prompt import Ask


class PlanFiles:
    """Puts the plan into files and on the clipboard.

    Args:
        session: what every screen works with.
        table: the panel of plans.
        ask: asks for a text at the bottom.
        saved: called when the plan stands in a file.
    """

    def __init__(self, session: Session, table: ComparisonTable, ask: Ask, saved: Callable[[], object]) -> None:
        self._session = session
        self._store = session.store
        self._table = table
        self._ask = ask
        self._saved = saved
        self._asked_to_replace: Path | None = None
        self.commands: Commands = {
            "file.save": self.save,
            "file.save_as": self.save_as,
            "file.export": self.export,
            "copy.plan": self.copy_plan,
            "copy.table": self.copy_table,
        }

    def save(self) -> None:
        """Save the plan where it came from, or ask where to."""
        document, path = self._store.document, self._store.path
        if document is None:
            return
        if path is None:
            self.save_as()
        elif refusal := self._save(path, document.dump()):
            self._session.say(refusal, "bad")

    def save_as(self) -> None:
        """Ask where to save the plan."""
        document, engine = self._store.document, self._session.engine_if_loaded
        if document is None or engine is None:
            return
        start = self._store.path or engine.plans_folder() / f"{document.name}.yaml"

        def accept(text: str) -> str:
            path = plan_path(text, start.parent)
            return self._may_write(text, path) or self._save(path, document.dump())

        self._asked_to_replace = None
        self._ask("Save the plan as", shortened(start), accept)

    def export(self) -> None:
        """Show what the chosen plan can be exported as, then ask where to write it."""
        document, column = self._store.document, self._store.column
        if document is None or column is None or self._store.is_stale:
            self._session.say("there are no numbers of this plan yet; nothing was written", "warn")
            return
        from capacity_tui.tui.screens.plan.export_menu import ExportMenu

        title = f"Export {document.name}, {column.mode}"
        menu = ExportMenu(self._session, title, lambda: document.exports(column.mode))
        self._session.app.push_screen(menu, self._ask_where)

    def _ask_where(self, export: Export | None) -> None:
        """Ask where to write what was chosen."""
        if export is None:
            return

        def accept(text: str) -> str:
            path = expanded(text)
            if not export.folder and path.name and not path.suffix:
                path = path.with_suffix(Path(export.name).suffix)
            refusal = self._may_export(text, path, export) or self._write_export(path, export)
            if not refusal:
                self._session.say(f"exported to {path.absolute()}", "good")
            return refusal

        self._asked_to_replace = None
        where = "folder" if export.folder else "file"
        self._ask(f"Write {export.title.lower()} to the {where}", export.name, accept)

    def _may_export(self, text: str, path: Path, export: Export) -> str:
        """Return why an export cannot be written, what the same answer again must confirm, or an empty text."""
        if not export.folder:
            return self._may_write(text, path)
        if not text:
            return "type the name of a folder"
        try:
            there = [name for name in export.files if (path / name).exists()]
        except OSError as error:
            return storage_error(error, path, "cannot be written").one_line()
        if not there or path == self._asked_to_replace:
            return ""
        self._asked_to_replace = path
        return f"{', '.join(there)} in {path}: enter once more replaces what is there"

    def _write_export(self, path: Path, export: Export) -> str:
        """Write the files of an export; return why that failed, or an empty text."""
        for name, text in export.files.items():
            if refusal := write_file(path / name if export.folder else path, text):
                return refusal
        return ""

    def copy_plan(self) -> None:
        """Copy the chosen plan as YAML."""
        chosen = self._chosen()
        if chosen is not None:
            self._session.copy(chosen[2], "copied.yaml")

    def copy_table(self) -> None:
        """Copy the table of plans."""
        if self._store.is_stale or self._store.comparison is None:
            self._session.say("the table shows an earlier plan; nothing was copied", "warn")
        else:
            self._session.copy(self._table.as_text())

    def _chosen(self) -> tuple[str, str, str] | None:
        """Return name, mode and text of the chosen plan; say why there is none."""
        document, column = self._store.document, self._store.column
        if document is None or column is None or self._store.is_stale:
            self._session.say("there are no numbers of this plan yet; nothing was written", "warn")
            return None
        try:
            return document.name, column.mode, document.dump(column.mode)
        except CapacityError as error:
            self._session.say(error.one_line(), "bad")
            return None

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
        engine = self._session.engine_if_loaded
        if engine is None:
            return "the engine is still being loaded"
        try:
            aside = engine.save(path, text)
        except CapacityError as error:
            return error.one_line()
        self._store.mark_saved(path)
        self._session.keep_unsaved()
        self._saved()
        kept = f"; the damaged file that was there is kept as {aside.name}" if aside else ""
        self._session.say(f"saved to {path}{kept}", "good")
        return ""
