"""Where headless results go: stdout or a file; tables as wide as they need where nobody looks at a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from capacity_tui.engine.errors import CapacityError, Place, StorageError
from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.schema import format_of_suffix

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.segment import Segment

_NO_LIMIT = 10_000
_NEVER_TEXT = frozenset((".pdf", ".doc", ".docx", ".odt", ".xls", ".xlsx", ".ods", ".png", ".jpg", ".jpeg", ".gif"))
"""Names of files that only other programs can write; text under such a name would open nowhere."""

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def format_option(*choices: str) -> Callable[[CommandT], CommandT]:
    """Return the ``--format`` option of a command."""
    return click.option("--format", "wanted", type=click.Choice(choices), help="Form of the output.")


def output_option(command: CommandT) -> CommandT:
    """Add the ``-o`` option of a command."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        callback=_text_file,
        help="Write here instead; the suffix can say the form.",
    )(command)


def _text_file(_: click.Context, __: click.Parameter, output: Path | None) -> Path | None:
    """Return where to write, unless its name promises what is not text."""
    if output is not None and output.suffix.lower() in _NEVER_TEXT:
        raise click.BadParameter(f"{output.suffix} files cannot be written: --help says what --format can")
    return output


def format_of(output: Path | None) -> str | None:
    """Return the format that a file's name asks for."""
    return format_of_suffix(output.suffix) if output else None


def write(text: str, output: Path | None, inputs: Iterable[str] = ()) -> None:
    """Write a result to stdout, or to a file in one step; never over the plan it was made from.

    Raises:
        StorageError: the file cannot be written, or is one of the inputs.
    """
    if output is None:
        sys.stdout.write(text)
        return
    from capacity_tui.engine.files import write_atomically

    for name in inputs:
        if output.exists() and Path(name).exists() and output.samefile(name):
            raise StorageError("this is the plan itself", hint="name another file", place=Place(str(output)))
    write_atomically(output, text, overwrite=True)
    tell(f"wrote {output}")


def tell(line: str) -> None:
    """Say something about the work on stderr, beside the data."""
    click.echo(printable(line), err=True)


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
