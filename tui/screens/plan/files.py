"""Saving, exporting and copying the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.paths import plan_path, shortened
from capacity_tui.tui.screens.exporting import Exporting, Replacing
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
        self._replacing, self._exporting = Replacing(), Exporting(session, ask)
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
            return self._replacing.refusal(text, path) or self._save(path, document.dump())

        self._replacing.forget()
        self._ask("Save the plan as", shortened(start), accept)

    def export(self) -> None:
        """Show what the chosen plan can be exported as, then ask where to write it."""
        document, column = self._store.document, self._store.column
        if document is None or column is None or self._store.is_stale:
            self._session.say("there are no numbers of this plan yet; nothing was written", "warn")
            return
        self._exporting.choose(f"Export {document.name}, {column.mode}", lambda: document.exports(column.mode))

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
