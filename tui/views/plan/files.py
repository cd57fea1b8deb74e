"""Plans and files: opening, saving, restoring, and pictures of the chosen column."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from textual.dom import DOMNode

from capacity_tui.engine.errors import CapacityError
from capacity_tui.tui.actions import Commands
from capacity_tui.tui.requests import Request, reported
from capacity_tui.tui.session import Session
from capacity_tui.tui.settings import plan_path, shortened
from capacity_tui.tui.shown.comparison import HardwareRow
from capacity_tui.tui.shown.results import HARDWARE_KEY, Choice
from capacity_tui.tui.text import Line, Span, line
from capacity_tui.tui.unsaved import LeftBehind
from capacity_tui.tui.views.dialogs.export import Exporting, Replacing, export_pictures
from capacity_tui.tui.views.dialogs.picker import PATH, Picker
from capacity_tui.tui.views.plan.comparison import ComparisonTable
from capacity_tui.tui.views.plan.hardware import Hardware
from capacity_tui.tui.views.plan.why import picture_text
from capacity_tui.tui.views.view_screen import ShowPictures
from capacity_tui.tui.widgets.prompt import Ask

if TYPE_CHECKING:
    from capacity_tui.engine.present.pictures import Picture
    from capacity_tui.tui.view import Document


_NOTHING_WRITTEN = "; nothing was written"


class PlanFiles:
    """Puts the plan into files and on the clipboard."""

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
        document, path = self._store.document, self._store.path
        if document is None:
            return
        if path is None:
            self.save_as()
        elif refusal := self._save(path, document.dump()):
            self._session.say(refusal, "bad")

    def save_as(self) -> None:
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
        numbers = self._session.numbers(_NOTHING_WRITTEN)
        if numbers is None:
            return
        document, column = numbers
        self._exporting.choose(f"Export {document.name}, {column.mode}", lambda: document.exports(column.mode))

    def copy_plan(self) -> None:
        numbers = self._session.numbers(_NOTHING_WRITTEN)
        if numbers is None:
            return
        document, column = numbers
        try:
            self._session.copy(document.dump(column.mode), "copied.yaml")
        except CapacityError as error:
            self._session.say(error.one_line(), "bad")

    def copy_table(self) -> None:
        if self._store.is_stale or self._store.comparison is None:
            self._session.say("the table shows an earlier plan; nothing was copied", "warn")
        else:
            self._session.copy(self._table.as_text())

    def _save(self, path: Path, text: str) -> str:
        engine = self._session.engine_if_loaded
        if engine is None:
            return "the engine is still loading"
        try:
            aside = engine.save(path, text)
        except CapacityError as error:
            return error.one_line()
        self._store.mark_saved(path)
        self._session.keep_unsaved()
        self._saved()
        self._session.answers.publish(None)  # nothing differs from the file any more
        kept = f"; the damaged file is kept as {aside.name}" if aside else ""
        self._session.say(f"saved to {path}{kept}", "good")
        return ""


_LATER, _DISCARD = "decide later", "discard"
_Opened: TypeAlias = "tuple[Document, Path | None, tuple[str, ...]]"
"""A plan, its file, and what was guessed of one that was said in a line."""


class Opening:
    """Opens plans.

    Args:
        screen: who waits for the answers.
        hardware: shows this machine until a plan says what it is planned for.
    """

    def __init__(self, session: Session, screen: DOMNode, hardware: Hardware) -> None:
        self._session = session
        self._screen = screen
        self._hardware = hardware
        self._left_behind: tuple[LeftBehind, ...] = ()
        self.commands: Commands = {"file.open": self.pick, "file.restore": self.restore}

    def begin(self, source: Path | str | None, accelerator: str | None) -> None:
        """Look at the machine, then open the plan that was asked for, or propose one."""
        session = self._session
        opening: Request[_Opened] = session.request(session.app, "open", lambda opened: session.take_up(*opened))
        restoring = session.request(self._screen, "left behind", self._offer)
        detecting = session.request(self._screen, "detect", self._show_machine)

        def work(_: object) -> None:
            with reported(restoring.fail):
                if left_behind := session.unsaved.left_behind():
                    restoring.answer(left_behind)
            with reported(detecting.fail):
                detecting.answer(session.engine.detect())
            if not opening.is_newest:
                return
            with reported(opening.fail):
                opening.answer(self._first(source, accelerator))

        session.ask(self._screen, "begin", work)

    def pick(self) -> None:
        def picked(choice: str | None) -> None:
            if choice is not None:
                self._session.open_named(choice)

        picker = Picker(self._session, "Open a plan", lambda: self._session.engine.catalogue("profile"), typed=PATH)
        self._session.app.push_screen(picker, picked)

    def _show_machine(self, rows: tuple[HardwareRow, ...]) -> None:
        self._hardware.rows = rows
        # A plan that was opened meanwhile knows nothing of this machine yet.
        self._session.renew_plan()

    def _offer(self, left_behind: tuple[LeftBehind, ...]) -> None:
        """Ask what to do with edits that were not saved when the program ended.

        A list that opens under the hands of somebody who types would take the keys: then a note tells of them.
        """
        self._left_behind = left_behind
        if self._session.was_typed:
            self._tell(", ".join(plan.name for kept in left_behind for plan in kept.plans))
        else:
            self.restore()

    def restore(self) -> None:
        """Let the user choose what becomes of edits that were left behind."""
        left_behind = self._left_behind
        if not left_behind:
            self._session.say("nothing to restore")
            return
        plans = (
            Choice(str(index), f"restore {', '.join(plan.name for plan in kept.plans)}", _described(kept))
            for index, kept in enumerate(left_behind)
        )
        choices = (*plans, Choice(_LATER, _LATER, "at the next start"), Choice(_DISCARD, _DISCARD, "for good"))

        def picked(choice: str | None) -> None:
            self._left_behind = ()
            self._tell("")
            for index, kept in enumerate(left_behind):
                if choice == str(index):
                    self._restore(kept)
                elif choice == _DISCARD:
                    kept.discard()
                else:
                    kept.leave()

        picker = Picker(self._session, "Unsaved when the program ended", lambda: choices)
        self._session.app.push_screen(picker, picked)

    def _tell(self, left_behind: str) -> None:
        self._session.left_behind = left_behind
        self._session.answers.publish(None)

    def _first(self, source: Path | str | None, accelerator: str | None) -> _Opened:
        engine = self._session.engine
        if isinstance(source, Path) and engine.is_line(str(source)):
            document, assumed = engine.plan_of_line(str(source), None, accelerator)
            return document, None, assumed
        place = engine.locate(source) if isinstance(source, Path) else source
        document = engine.open(place) if place else engine.propose(accelerator)
        if place and accelerator:
            document = document.edited(HARDWARE_KEY, accelerator)
        return document, place if isinstance(place, Path) else None, ()

    def _restore(self, kept: LeftBehind) -> None:
        def work(_: object) -> tuple[tuple[Document, Path | None], ...]:
            opened = ((self._session.engine.open(plan.text), plan.path) for plan in kept.plans)
            return tuple((document, Path(path) if path else None) for document, path in opened)

        restore = partial(self._session.restore, kept)
        # What comes too late stays for the next run of the program.
        self._session.ask(self._session.app, "open", work, restore, drop=lambda _: kept.leave())


def _described(kept: LeftBehind) -> str:
    when = f"{kept.kept_at:%Y-%m-%d %H:%M}"
    return ", ".join([when, *(shortened(Path(plan.path)) for plan in kept.plans if plan.path)])


class Picturing:
    """Has pictures drawn in a thread, and shows them over the panels.

    Args:
        show: shows pictures over the panels.
    """

    def __init__(self, session: Session, screen: DOMNode, show: ShowPictures) -> None:
        self._session = session
        self._screen = screen
        self._show = show
        self.commands: Commands = {"why.pictures": self.ask_for_pictures}

    def ask_for_pictures(self) -> None:
        numbers = self._session.numbers()
        if numbers is None:
            return
        document, column = numbers
        show = partial(self._show_pictures, f"Pictures of {column.mode}")
        self._session.ask(self._screen, "pictures", lambda _: document.pictures(column.mode), show)

    def _show_pictures(self, heading: str, pictures: tuple[tuple[str, Picture], ...]) -> None:
        ascii_only = self._session.app.has_class("-ascii")

        def build(width: int) -> list[Line]:
            lines: list[Line] = []
            for title, picture in pictures:
                lines += [line(Span(title, "heading")), *picture_text(picture, width, ascii_only), line()]
            return lines

        def export() -> None:
            from capacity_tui.engine.present.pictures import picture_file

            drawn = ((title, picture_file(picture)) for title, picture in pictures)
            export_pictures(self._session, "plan", [one for one in drawn if one[1]])

        self._show(heading, build, export)
