"""Leaving the program: a menu of forms, where to write the one that is chosen, and writing it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import storage_error
from capacity_tui.tui.paths import expanded, write_file
from capacity_tui.tui.requests import Request
from capacity_tui.tui.session import Session
from capacity_tui.tui.shown.exported import Export
from capacity_tui.tui.widgets.prompt import Ask


class Replacing:
    """Lets a file be written that is not there yet; one that is must be confirmed by the same answer again."""

    def __init__(self) -> None:
        self._confirmed: Path | None = None

    def forget(self) -> None:
        """Ask anew before anything is replaced."""
        self._confirmed = None

    def refusal(self, text: str, path: Path) -> str:
        """Return why a file cannot be written, what the same answer again must confirm, or an empty text.

        Args:
            text: what was typed.
            path: the file that it means.
        """
        if text.endswith("/") or not Path(text).name.strip("."):
            return "type the name of a file"
        try:
            if path.is_dir():
                return f"{path} is a folder; name a file in it"
            is_new = not path.exists()
        except OSError as error:
            return storage_error(error, path, "cannot be written").one_line()
        if is_new or path == self._confirmed:
            return ""
        self._confirmed = path
        return f"{path} exists; enter once more replaces it"

    def refusal_of(self, text: str, path: Path, export: Export) -> str:
        """Return the same for an export, which may be a folder of files."""
        if not export.folder:
            return self.refusal(text, path)
        if not text:
            return "type the name of a folder"
        try:
            there = [name for name in export.files if (path / name).exists()]
        except OSError as error:
            return storage_error(error, path, "cannot be written").one_line()
        if not there or path == self._confirmed:
            return ""
        self._confirmed = path
        return f"{', '.join(there)} in {path}: enter once more replaces what is there"


class Exporting:
    """Shows the forms that something can be written in, then asks where to write the chosen one.

    Args:
        session: what every screen works with.
        ask: asks for a text at the bottom.
    """

    def __init__(self, session: Session, ask: Ask) -> None:
        self._session = session
        self._ask = ask
        self._replacing = Replacing()

    def choose(self, title: str, read: Callable[[], tuple[Export, ...]]) -> None:
        """Show the forms.

        Args:
            title: what is exported.
            read: returns the forms; runs in a thread.
        """
        from capacity_tui.tui.screens.dialogs.export_menu import ExportMenu

        self._session.app.push_screen(ExportMenu(self._session, title, read), self._ask_where)

    def _ask_where(self, export: Export | None) -> None:
        """Ask where to write what was chosen."""
        if export is None:
            return

        def accept(text: str) -> str:
            path = expanded(text)
            if not export.folder and path.name and not path.suffix:
                path = path.with_suffix(Path(export.name).suffix)
            refusal = self._replacing.refusal_of(text, path, export) or _write(path, export)
            if not refusal:
                self._session.say(f"exported to {path.absolute()}", "good")
                self._keep(export)
            return refusal

        self._replacing.forget()
        where = "folder" if export.folder else "file"
        self._ask(f"Write {export.title.lower()} to the {where}", export.name, accept)

    def _keep(self, export: Export) -> None:
        """Have what was exported kept in the history."""

        def work(_: Request) -> None:
            if export.keep is not None and (note := export.keep(self._session.settings.history)):
                raise StorageError(note)

        self._session.ask(self._session.app, "history", work)


def _write(path: Path, export: Export) -> str:
    """Write the files of an export; return why that failed, or an empty text."""
    for name, text in export.files.items():
        if refusal := write_file(path / name if export.folder else path, text):
            return refusal
    return ""
