"""The forms in which a plan can leave the program: files, a command, reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from capacity_tui.engine.errors import CapacityError, StorageError
from capacity_tui.engine.files import storage_error, typed_path
from capacity_tui.tui.actions import dialog_bindings
from capacity_tui.tui.requests import Fault
from capacity_tui.tui.session import Session
from capacity_tui.tui.settings import shortened, write_file
from capacity_tui.tui.shown.results import Export
from capacity_tui.tui.text import Line, Span, fold, line, list_row, wrap
from capacity_tui.tui.widgets.lines import ClosesOnce, Lines
from capacity_tui.tui.widgets.prompt import Ask


class Replacing:
    """Lets a file be written that is not there yet; one that is must be confirmed by the same answer again."""

    def __init__(self) -> None:
        self._confirmed: Path | None = None

    def forget(self) -> None:
        """Ask anew before anything is replaced."""
        self._confirmed = None

    def refusal(self, text: str, path: Path) -> str:
        """Return why a file cannot be written, what the same answer again must confirm, or an empty text."""
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
        return f"{path} exists; enter again replaces it"

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
        return f"{', '.join(there)} in {path}: enter again replaces them"


class Exporting:
    """Shows the forms that something can be written in, then asks where to write the chosen one."""

    def __init__(self, session: Session, ask: Ask) -> None:
        self._session = session
        self._ask = ask
        self._replacing = Replacing()

    def choose(self, title: str, read: Callable[[], tuple[Export, ...]]) -> None:
        """Show the forms, read in a thread."""
        self._session.app.push_screen(ExportMenu(self._session, title, read), self._ask_where)

    def _ask_where(self, export: Export | None) -> None:
        if export is None:
            return

        def accept(text: str) -> str:
            path = typed_path(text)
            if not export.folder and path.name and not path.suffix:
                path = path.with_suffix(Path(export.name).suffix)
            refusal = self._replacing.refusal_of(text, path, export) or _write(path, export)
            if not refusal:
                self._session.say(_exported(path), "good")
                self._keep(export)
            return refusal

        self._replacing.forget()
        where = "folder" if export.folder else "file"
        self._ask(f"Write {export.title.lower()} to the {where}", export.name, accept)

    def _keep(self, export: Export) -> None:
        def work(_: object) -> None:
            if export.keep is not None and (note := export.keep(self._session.settings.history)):
                raise StorageError(note)

        self._session.ask(self._session.app, "history", work)


def _exported(path: Path) -> str:
    """Return what was written, its name first: what has no room is cut at the end."""
    return f"exported {path.name} to {shortened(path.absolute().parent)}"


def _write(path: Path, export: Export) -> str:
    """Write the files of an export, a picture as what its name ends in; return why that failed, or an empty text."""
    for name, text in export.files.items():
        to = path / name if export.folder else path
        try:
            content = _png_of(text) if to.suffix == _PNG else text
        except CapacityError as error:
            return error.one_line()
        if refusal := write_file(to, content):
            return refusal
    return ""


_SVG, _PNG = ".svg", ".png"


def _preview(export: Export, width: int) -> list[Line]:
    """Return what is written: a text as it stands, a picture in words, since its source tells nobody anything."""
    if Path(export.name).suffix not in (_SVG, _PNG):
        return [line(Span(part, "dim")) for whole in export.text.splitlines() for part in fold(whole, width)]
    from capacity_tui.engine.present.pictures import in_words

    title, description = in_words(export.text)
    parts = (part for sentence in description.split("; ") for part in wrap(sentence, width, "  "))
    return [line(Span(title, "heading")), *(line(Span(part, "dim")) for part in parts)]


def _png_of(drawing: str) -> bytes:
    from capacity_tui.engine.present.pictures import as_png

    return as_png(drawing)


def _picture_exports(name: str, drawings: Iterable[tuple[str, str]]) -> Iterator[Export]:
    """Yield titled pictures in both forms, whose files begin with a name."""
    for title, drawing in drawings:
        stem = "-".join(filter(None, re.split(r"[^\w]+", f"{name} {title}".casefold())))
        yield Export(f"{title}, SVG", "vector graphics, for pages and papers", {f"{stem}{_SVG}": drawing})
        yield Export(f"{title}, PNG", "the same as a bitmap", {f"{stem}{_PNG}": drawing})


def export_pictures(session: Session, name: str, drawings: Sequence[tuple[str, str]]) -> None:
    """Have one of some pictures picked, and write it to a new file of the folder that the program runs in."""
    exports = tuple(_picture_exports(name, drawings))
    if not exports:
        session.say("no chart here yet", "warn")
        return

    def write(export: Export | None) -> None:
        if export is None:
            return

        def work(_: object) -> Path:
            path = _free(Path(export.name))
            if refusal := _write(path, export):
                raise StorageError(refusal)
            return path

        session.ask(session.app, "picture", work, lambda path: session.say(_exported(path), "good"))

    session.app.push_screen(ExportMenu(session, "Pictures", lambda: exports), write)


def _free(path: Path) -> Path:
    """Return a path at which nothing lies: with a number where the name is taken."""
    names = (path, *(path.with_stem(f"{path.stem}-{number}") for number in range(2, 1000)))
    return next((name for name in names if not name.exists()), path)


_NARROWEST_TITLE, _BETWEEN = 26, 2
_LEAST_ROWS = 4


class ExportMenu(ModalScreen[Export | None], ClosesOnce[Export | None]):
    """Shows the forms a plan can be written in, read in a thread; returns the one that is to be written."""

    BINDINGS: ClassVar[list[BindingType]] = dialog_bindings("export")

    def __init__(self, session: Session, title: str, read: Callable[[], tuple[Export, ...]]) -> None:
        super().__init__()
        self._session = session
        self._title = title
        self._read = read
        self._exports: tuple[Export, ...] = ()
        self._cursor = 0
        self._message = "reading the plan for what it can be written as…"
        self._when_read: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as frame:
            frame.border_title = Content(self._title)
            frame.border_subtitle = Content("enter writes it, y copies it, esc cancels")
            yield Lines(id="exports")
            yield Lines(id="export-text")

    def on_mount(self) -> None:
        """Have everything written that there is to choose from."""
        self._session.ask(self, "exports", lambda _: self._read(), self._take_exports, failed=self._show_failure)

    def _take_exports(self, exports: tuple[Export, ...]) -> None:
        """Show what can be chosen, unless the menu was closed meanwhile."""
        if not self.is_attached:
            return
        self._exports = exports
        self.query_one("#exports", Lines).styles.height = min(len(exports) + 1, max(self.size.height // 2, _LEAST_ROWS))
        self.call_after_refresh(self.show_lines)
        if self._when_read is not None:
            self._when_read()

    def _show_failure(self, fault: Fault) -> None:
        self._when_read, self.is_answered, self._message = None, False, fault.in_short
        self.show_lines()

    def action_move(self, offset: int) -> None:
        self._cursor = max(0, min(self._cursor + offset, len(self._exports) - 1))
        self.show_lines()

    def action_write(self) -> None:
        """Return what is under the cursor; while all of it is written, once it is there."""
        if self._exports:
            self.dismiss(self._exports[self._cursor])
        else:
            self._wait_to(self.action_write)

    def action_copy(self) -> None:
        """Copy what is under the cursor, which also goes to a file: a terminal may refuse."""
        if self._exports:
            chosen = self._exports[self._cursor]
            self._session.copy(
                chosen.text, str(Path(chosen.name).with_suffix(_SVG)) if _PNG in chosen.name else chosen.name
            )
            self.dismiss(None)
        else:
            self._wait_to(self.action_copy)

    def _wait_to(self, act: Callable[[], None]) -> None:
        self._when_read, self.is_answered = act, True

    def show_lines(self) -> None:
        """Lay out what there is to choose from, unless the menu was closed meanwhile."""
        if not self.is_attached:
            return
        lines, text = self.query_one("#exports", Lines), self.query_one("#export-text", Lines)
        if not self._exports:
            lines.show([line(Span(self._message, "dim"))])
            return
        width = lines.size.width
        shown = [self._line(export, index, width) for index, export in enumerate(self._exports)]
        lines.show([*shown, line()], range(self._cursor, self._cursor + 1))
        text.show(_preview(self._exports[self._cursor], width))

    def _line(self, export: Export, index: int, width: int) -> Line:
        titled = max(_NARROWEST_TITLE, *(cell_len(one.title) + _BETWEEN for one in self._exports))
        return list_row(index == self._cursor, export.title, export.detail, min(titled, 2 * width // 3), width)
