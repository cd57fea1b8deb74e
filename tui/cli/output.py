"""Where a command writes, in which form, and how far it is: results on standard output, progress on standard error."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, ParamSpec

import click

from capacity_tui.engine import files, present, schema
from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from rich.console import RenderableType


CLEAR = "\r\x1b[K"  # Begins a line of a terminal anew
PATIENCE = 1.0  # Seconds after which somebody wants to see that a command works
ON_TERMINAL, ELSEWHERE = 0.2, 10.0
"""Seconds between two states, where one line changes and where each is a line of a file."""
_NO_LIMIT = 10_000
_SHORT_TERMINAL = 24  # Rows of the usual terminal; what is longer scrolls away before it is read

StateP = ParamSpec("StateP")


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go, and in which form."""

    wanted: str | None = None  # the form that an option says
    path: Path | None = None  # the file; standard output without one
    choices: Sequence[str] = ()  # the forms there are

    @property
    def form(self) -> str | None:
        """The form that an option or the file's suffix says."""
        if self.wanted or self.path is None:
            return self.wanted

        suffix = self.path.suffix.lower()
        return suffix[1:] if suffix[1:] in self.choices else schema.format_of_suffix(self.path.suffix)

    @property
    def is_data(self) -> bool:
        return self.form in ("json", "yaml")

    @property
    def is_file(self) -> bool:
        return self.path is not None

    @property
    def is_on_short_terminal(self) -> bool:
        """Whether results go to a terminal that has no room for all that a plan comes to."""
        return not self.is_file and sys.stdout.isatty() and get_terminal_size().lines <= _SHORT_TERMINAL

    @property
    def takes_unicode(self) -> bool:
        return self.is_file or "utf" in (sys.stdout.encoding or "").lower()

    def report(self, data: Callable[[], object], parts: Callable[[], Iterable[present.Part]]) -> None:
        """Write a result as data where that is asked for, else as the parts of a report."""
        if self.is_data:
            self.data(data())
        else:
            self.parts(parts())

    def table_or(self, parts: Callable[[], Iterable[present.Part]], text: Callable[[str], str]) -> None:
        """Write the parts of a report as tables, unless another form is wanted: then its text."""
        if self.form in (None, "table"):
            self.parts(parts())
        else:
            self.write(text(self.form))

    def data(self, data: object, inputs: Iterable[str] = ()) -> None:
        self.write(self.data_text(data), inputs)

    def data_text(self, data: object) -> str:
        return present.to_yaml(data) if self.form == "yaml" else present.to_json(data)

    def parts(self, parts: Iterable[present.Part], inputs: Iterable[str] = ()) -> None:
        self.write(self.parts_text(parts), inputs)

    def parts_text(self, parts: Iterable[present.Part]) -> str:
        from capacity_tui.tui.cli.rich_tables import rich_parts

        return self.text(rich_parts(parts))

    def pairs(self, entries: Iterable[tuple[str, str]]) -> None:
        from capacity_tui.tui.cli.rich_tables import pairs

        self.show([pairs(entries)])

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> None:
        """Write a plain table, columns of numbers flush right."""
        self.parts([present.table_part(heads, rows, right)])

    def show(self, tables: Iterable[RenderableType], inputs: Iterable[str] = ()) -> None:
        self.write(self.text(tables), inputs)

    def text(self, tables: Iterable[RenderableType]) -> str:
        return as_text(tables, self.is_file)

    def write(self, text: str, inputs: Iterable[str] = ()) -> None:
        """Write a text to stdout, or to a file in one step; never over the plan it was made from.

        Raises:
            StorageError: the file cannot be written, or is one of the inputs.
        """
        if self.path is None:
            sys.stdout.write(text)
            return

        for name in inputs:
            if self.path.exists() and Path(name).exists() and self.path.samefile(name):
                raise StorageError("this is the plan itself", hint="name another file", place=Place(str(self.path)))
        files.write_atomically(self.path, text, overwrite=True)
        tell(f"wrote {self.path}")


def tell(line: str) -> None:
    """Say something about the work on stderr, beside the data, in place of a line of progress."""
    click.echo(f"{CLEAR if sys.stderr.isatty() else ''}{printable(line)}", err=True)


def tell_problems(problems: Sequence[CapacityError]) -> None:
    """Say in one line what is wrong with the user's own catalogue files; the rows concerned are left out."""
    if problems:
        more = f"; and {len(problems) - 1} more: capacity-tui validate" if len(problems) > 1 else ""
        tell(f"capacity-tui: {problems[0].one_line()}{more}")


def tell_faults(faults: Iterable[CapacityError]) -> None:
    for fault in faults:
        tell(f"capacity-tui: {fault.one_line()}")


def say(line: str) -> None:
    """Say a result of one line on stdout."""
    click.echo(printable(line))


def as_text(parts: Iterable[RenderableType], to_file: bool = False) -> str:
    """Return tables and lines as text: styled for a terminal, plain for a file or pipe.

    What nobody sees in a terminal is not folded, unless ``COLUMNS`` says how wide it may be.
    """
    from rich.console import Console
    from rich.segment import Segments

    terminal = sys.stdout.isatty() and not to_file
    columns = os.environ.get("COLUMNS", "")
    console = Console(
        file=sys.stdout,
        width=None if terminal else int(columns) if columns.isdigit() and int(columns) else _NO_LIMIT,
        no_color=None if terminal else True,
        force_terminal=None if terminal else False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            segments = (
                segment if segment.control else segment._replace(text=printable_lines(segment.text))
                for segment in console.render(part)
            )
            console.print(Segments(segments), end="")
    lines = capture.get().splitlines()
    return "\n".join(lines if terminal else [line.rstrip() for line in lines]) + "\n"


def location_as_dict(place: Place) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "field": place.field}


def fault_data(fault: CapacityError) -> dict[str, object]:
    return {**location_as_dict(fault.place), "title": fault.title, "detail": fault.detail, "hint": fault.hint}


class Progress:
    """Shows what a command does, from its first second on: on a terminal in one line, in a file in one now and then."""

    def __init__(self, what: str) -> None:
        self._state: Callable[[], str] = lambda: what
        self._begun, self._over = monotonic(), Event()
        self._is_terminal = sys.stderr.isatty()
        self._showing = Thread(target=self._keep_showing, daemon=True)
        self._showing.start()

    def show(self, state: Callable[[], str]) -> None:
        """Show a state from now on, which is asked for in words now and then, in another thread."""
        self._state = state

    def telling(self, words: Callable[StateP, str]) -> Callable[StateP, None]:
        """Return what is called with a state of the work, and shows it by its words."""

        def tell_state(*state: StateP.args, **named: StateP.kwargs) -> None:
            self.show(lambda: words(*state, **named))

        return tell_state

    def end(self) -> None:
        """Show nothing more, and take the line of a terminal away."""
        self._over.set()
        self._showing.join()
        if self._is_terminal:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def _keep_showing(self) -> None:
        pause = PATIENCE
        while not self._over.wait(pause):
            line = printable(f"{monotonic() - self._begun:.0f} s: {self._state()}")
            width = get_terminal_size().columns - 1
            sys.stderr.write(f"{CLEAR}{line[:width]}" if self._is_terminal else f"{line}\n")
            sys.stderr.flush()
            pause = ON_TERMINAL if self._is_terminal else ELSEWHERE


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Give what shows progress for as long as work goes on, named in words."""
    shown = Progress(what)
    try:
        yield shown
    finally:
        shown.end()


@contextmanager
def interrupted(pressed: Event | None = None) -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C set an event instead of ending the program at once; a second one ends it."""
    pressed = Event() if pressed is None else pressed
    before = signal.getsignal(signal.SIGINT)

    def press(*_: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    try:
        signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread: nobody can press it here
        yield lambda: False
        return
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
