"""Where a command writes, in which form, and how far it is: results on standard output, progress on standard error."""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from shutil import get_terminal_size
from threading import Event, Thread
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

import click

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.segment import Segment

    from capacity_tui.engine.present import Part

CLEAR = "\r\x1b[K"
ON_TERMINAL, ELSEWHERE = 0.2, 10.0


"""Begins a line of a terminal anew."""
_NO_LIMIT = 10_000
_SHORT_TERMINAL = 24
"""Rows of the usual terminal; what is longer scrolls away before it is read."""

_NEVER_TEXT = frozenset((".pdf", ".doc", ".docx", ".odt", ".xls", ".xlsx", ".ods", ".png", ".jpg", ".jpeg", ".gif"))
"""Names of files that only other programs can write; text under such a name would open nowhere."""

Command = Callable[..., object]


def output_options(*choices: str, to_file: bool = True) -> Callable[[Command], Command]:
    """Return the options that say where results go and in which form, as the argument ``output`` of a command.

    Args:
        choices: forms of ``--format``; none for a command that has but one.
        to_file: whether there is ``-o`` too.
    """

    def with_options(command: Command) -> Command:
        @wraps(command)
        def with_output(output: Path | None = None, wanted: str | None = None, **others: object) -> object:
            return command(output=Output(wanted, output, choices), **others)

        wrapped: Command = with_output
        if to_file:
            wrapped = _output_option(wrapped)
        return _format_option(choices)(wrapped) if choices else wrapped

    return with_options


def _text_file(_: click.Context, __: click.Parameter, output: Path | None) -> Path | None:
    """Return where to write, unless its name promises what is not text."""
    if output is not None and output.suffix.lower() in _NEVER_TEXT:
        raise click.BadParameter(f"{output.suffix} files cannot be written: --help says what --format can")
    return output


_output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=_text_file,
    help="Write here instead; the suffix can say the form.",
)


def _format_option(choices: Sequence[str]) -> Callable[[Command], Command]:
    return click.option("--format", "wanted", type=click.Choice(choices), help="Form of the output.")


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go, and in which form.

    Attributes:
        wanted: the form that an option says.
        path: the file; standard output without one.
        choices: the forms there are.
    """

    wanted: str | None = None
    path: Path | None = None
    choices: Sequence[str] = ()

    @property
    def form(self) -> str | None:
        """The form that an option or the file's suffix says."""
        if self.wanted or self.path is None:
            return self.wanted
        from capacity_tui.engine.schema import format_of_suffix

        suffix = self.path.suffix.lower()
        return suffix[1:] if suffix[1:] in self.choices else format_of_suffix(self.path.suffix)

    @property
    def is_data(self) -> bool:
        """Whether results are written as JSON or YAML."""
        return self.form in ("json", "yaml")

    @property
    def is_file(self) -> bool:
        """Whether they go to a file."""
        return self.path is not None

    @property
    def is_on_short_terminal(self) -> bool:
        """Whether results go to a terminal that has no room for all that a plan comes to."""
        return not self.is_file and sys.stdout.isatty() and get_terminal_size().lines <= _SHORT_TERMINAL

    @property
    def takes_unicode(self) -> bool:
        """Whether characters beyond ASCII can be written."""
        return self.is_file or "utf" in (sys.stdout.encoding or "").lower()

    def report(self, data: Callable[[], object], parts: Callable[[], Iterable[Part]]) -> None:
        """Write a result as data where that is asked for, else as the parts of a report."""
        if self.is_data:
            self.data(data())
        else:
            self.parts(parts())

    def data(self, data: object, inputs: Iterable[str] = ()) -> None:
        """Write plain data as YAML, or as JSON."""
        from capacity_tui.engine.present import to_json, to_yaml

        self.write(to_yaml(data) if self.form == "yaml" else to_json(data), inputs)

    def parts(self, parts: Iterable[Part], inputs: Iterable[str] = ()) -> None:
        """Write the parts of a report."""
        self.write(self.parts_text(parts), inputs)

    def parts_text(self, parts: Iterable[Part]) -> str:
        """Return the parts of a report as text, for where it goes."""
        from capacity_tui.tui.cli.rich_tables import rich_parts

        return self.text(rich_parts(parts))

    def show(self, tables: Iterable[RenderableType], inputs: Iterable[str] = ()) -> None:
        """Write tables and lines."""
        self.write(self.text(tables), inputs)

    def text(self, tables: Iterable[RenderableType]) -> str:
        """Return tables and lines as text, for where it goes."""
        return as_text(tables, self.is_file)

    def write(self, text: str, inputs: Iterable[str] = ()) -> None:
        """Write a text to stdout, or to a file in one step; never over the plan it was made from.

        Raises:
            StorageError: the file cannot be written, or is one of the inputs.
        """
        if self.path is None:
            sys.stdout.write(text)
            return
        from capacity_tui.engine.files import write_atomically

        for name in inputs:
            if self.path.exists() and Path(name).exists() and self.path.samefile(name):
                raise StorageError("this is the plan itself", hint="name another file", place=Place(str(self.path)))
        write_atomically(self.path, text, overwrite=True)
        tell(f"wrote {self.path}")


def tell(line: str) -> None:
    """Say something about the work on stderr, beside the data, in place of a line of progress."""
    click.echo(f"{CLEAR if sys.stderr.isatty() else ''}{printable(line)}", err=True)


def tell_problems(problems: Sequence[CapacityError]) -> None:
    """Say in one line what is wrong with the user's own catalogue files; the rows concerned are left out."""
    if problems:
        more = f"; and {len(problems) - 1} more: capacity-tui validate" if len(problems) > 1 else ""
        tell(f"capacity-tui: {problems[0].one_line()}{more}")


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
            console.print(Segments(map(_printable_segment, console.render(part))), end="")
    lines = capture.get().splitlines()
    return "\n".join(lines if terminal else [line.rstrip() for line in lines]) + "\n"


def _printable_segment(segment: Segment) -> Segment:
    return segment if segment.control else segment._replace(text=printable_lines(segment.text))


def place_data(place: Place) -> dict[str, object]:
    """Return where something stands."""
    return {"file": place.file, "line": place.line, "field": place.field}


def fault_data(fault: CapacityError) -> dict[str, object]:
    """Return what is wrong, where, and what to do about it."""
    return {**place_data(fault.place), "title": fault.title, "detail": fault.detail, "hint": fault.hint}


"""Seconds between two states that are shown."""
PATIENCE = 1.0
"""Seconds after which somebody wants to see that a command works."""


class Progress:
    """Shows states of a command that takes its time.

    Args:
        elsewhere: whether states are shown where nobody looks too, at longer intervals.

    Attributes:
        is_terminal: whether somebody looks at it.
    """

    def __init__(self, *, elsewhere: bool = True) -> None:
        self.is_terminal = sys.stderr.isatty()
        self._due = monotonic() + (0.0 if self.is_terminal else ELSEWHERE if elsewhere else math.inf)

    def show(self, text: Callable[[], str]) -> None:
        """Show a state, unless the last one was shown a moment ago.

        Args:
            text: returns it in words; not asked for otherwise.
        """
        if monotonic() < self._due:
            return
        if self.is_terminal:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"{CLEAR}{printable(text())[:width]}")
        else:
            sys.stderr.write(f"{printable(text())}\n")
        sys.stderr.flush()
        self._due = monotonic() + (ON_TERMINAL if self.is_terminal else ELSEWHERE)

    def clear(self) -> None:
        """Take the line away."""
        if self.is_terminal:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


@contextmanager
def progress(*, elsewhere: bool = True) -> Iterator[Progress]:
    """Give progress that is cleared at the end, whatever that is."""
    shown = Progress(elsewhere=elsewhere)
    try:
        yield shown
    finally:
        shown.clear()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show what is done, and for how long, on a terminal while work goes on that tells no states of its own."""
    begun, over = monotonic(), Event()
    with progress(elsewhere=False) as shown:

        def tick() -> None:
            while not over.wait(PATIENCE):
                shown.show(lambda: f"{what} ... {monotonic() - begun:.0f} s")

        ticking = Thread(target=tick, daemon=True)
        if shown.is_terminal:
            ticking.start()
        try:
            yield
        finally:
            over.set()
            if shown.is_terminal:
                ticking.join()


@contextmanager
def interrupted() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C be asked for instead of ending the program at once; a second one ends it."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def press(number: int, _: FrameType | None) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    try:
        signal.signal(signal.SIGINT, press)
    except ValueError:  # not the main thread: nobody can press it here
        yield lambda: False
        return
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
