"""Parts of a report as data, and as Markdown or an HTML page that needs nothing else, neither network nor script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

from capacity_tui.engine.printable import printable, printable_lines
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import PERCENT, format_number

if TYPE_CHECKING:
    from jinja2 import Template

RowT = TypeVar("RowT")
Tone = Literal["plain", "item", "strong", "quiet", "good", "warn", "bad", "dim"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A line of text."""

    text: str = ""
    # a strong one is a heading or a warning, a quiet one an aside, an item one of a list; the others are tones of
    # verdicts
    tone: Tone = "plain"
    subject: str = ""  # what it is about; pages whose title says it leave it out


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table."""

    heads: tuple[str, ...]  # names of the columns
    rows: tuple[tuple[str, ...], ...]  # their cells
    right: tuple[int, ...] = ()  # numbers of the columns that are flush right
    # numbers of the columns that stay where not all have room; without any all stay, their cells folded
    kept: tuple[int, ...] = ()
    # numbers of the columns that only draw what others say: left out first, and on pages altogether
    spare: tuple[int, ...] = ()
    # how long the bar behind each row is, as a share; without any there are none. Pages draw them.
    bars: tuple[float, ...] = ()
    has_swatches: bool = False  # whether the rows are the parts of the picture above, each in its colour
    # whether it is looked through: a row keeps to one line, and columns without room are left out
    is_list: bool = False


class Column(NamedTuple, Generic[RowT]):
    """One column of a table of like things."""

    head: str
    cell: Callable[[RowT], str]  # its text of a thing
    is_right: bool = False  # whether it is flush right
    is_kept: bool = False  # whether it stays where not all have room


@dataclass(frozen=True, slots=True)
class Section:
    """Rows under a title; a name that begins with two spaces is a part of the row above."""

    title: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class SectionsPart:
    """Rows under titles, in columns that all sections share."""

    heads: tuple[str, ...]  # names of the columns but the first
    sections: tuple[Section, ...]  # titles and rows
    # whether the last column is an aside to the one before: terminals have it in brackets, without heads
    has_aside: bool = False


@dataclass(frozen=True, slots=True)
class PicturePart:
    """A picture, for pages."""

    svg: str = ""  # the picture, with its texts escaped; empty where it is of text alone
    lines: tuple[str, ...] = ()  # the same, or the like of it, as lines of text
    caption: str = ""  # what it shows
    labels: tuple[str, ...] = ()  # names of its lines or parts, in the order of their colours


@dataclass(frozen=True, slots=True)
class CodePart:
    """A file, as it stands."""

    text: str
    language: str = "yaml"


_MULTIPLE = 10.0  # From this multiple on a difference is given as one
Part = TextPart | TablePart | SectionsPart | PicturePart | CodePart


def table_part(
    heads: Iterable[str],
    rows: Iterable[Sequence[str]],
    right: Iterable[int] = (),
    kept: Iterable[int] = (),
    spare: Iterable[int] = (),
) -> TablePart:
    """Return a table of whatever holds its cells."""
    return TablePart(tuple(heads), tuple(map(tuple, rows)), tuple(right), tuple(kept), tuple(spare))


def columns_part(columns: Sequence[Column[RowT]], rows: Iterable[RowT], *, is_list: bool = False) -> TablePart:
    """Return a table of like things, a row each."""
    right = tuple(number for number, column in enumerate(columns) if column.is_right)
    kept = tuple(number for number, column in enumerate(columns) if column.is_kept)
    cells = tuple(tuple(column.cell(row) for column in columns) for row in rows)
    return TablePart(tuple(column.head for column in columns), cells, right, kept, is_list=is_list)


VERDICTS: tuple[Tone, ...] = ("good", "warn", "bad", "dim")  # Tones of a verdict, which is a sentence of its own
# What would end a cell, begin markup or open a tag in the texts of a table.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def write_parts(form: str, title: str, parts: Iterable[Part], data: Callable[[], object]) -> str:
    """Return a report as json, yaml, markdown or html."""
    from capacity_tui.engine.present.results import to_json, to_yaml  # noqa: PLC0415 - they load what estimates need

    if form == "json":
        return to_json(data())
    if form == "yaml":
        return to_yaml(data())
    return parts_as_markdown(title, parts) if form == "markdown" else parts_as_html(title, parts)


def parts_as_markdown(title: str, parts: Iterable[Part]) -> str:
    """Return parts as Markdown: strong lines are headings, other lines paragraphs, or items where several follow."""
    return printable_lines("\n".join(_markdown(title, parts))) + "\n"


def parts_as_html(title: str, parts: Iterable[Part]) -> str:
    return printable_lines(template("page.html").render(title=title, parts=tuple(parts)))


def parts_in_notebook(parts: Iterable[Part]) -> str:
    """Return parts as HTML within a page of somebody else's."""
    return printable_lines(template("notebook.html").render(parts=tuple(parts)))


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return printable(text.translate(_SPECIAL))


def difference_text(share: float) -> str:
    """Return by what share a figure stands above what it was: in percent, from tenfold on as a factor."""
    return f"{PERCENT * share:+.0f} %" if 1.0 + share < _MULTIPLE else f"x{format_number(1.0 + share)}"


def sentence(text: str) -> str:
    """Return a text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def _markdown(title: str, parts: Iterable[Part]) -> Iterator[str]:
    yield f"# {escaped(title)}"
    for is_text, run in groupby(parts, _is_line):
        if is_text:
            yield from _paragraphs([part for part in run if isinstance(part, TextPart)])
            continue
        for part in run:
            yield ""
            yield from _block(part)


def _is_line(part: Part) -> bool:
    return isinstance(part, TextPart) and part.tone in ("plain", "item", "quiet")


def _paragraphs(run: Sequence[TextPart]) -> Iterator[str]:
    lines = [part for part in run if part.text or part.subject]
    is_list = len(lines) > 1 or any(part.tone == "item" for part in lines)
    if lines:
        yield ""
    for part in lines:
        subject = f"**{escaped(part.subject)}.** " if part.subject else ""
        yield f"{'- ' if is_list else ''}{subject}{escaped(part.text)}".rstrip()


def _block(part: Part) -> Iterator[str]:
    if isinstance(part, TextPart):
        yield f"**{escaped(sentence(part.text))}.**" if part.tone in VERDICTS else f"## {escaped(_heading(part))}"
    elif isinstance(part, TablePart):
        columns = [column for column in range(len(part.heads)) if column not in part.spare]
        heads = [part.heads[column] for column in columns]
        right = [number for number, column in enumerate(columns) if column in part.right]
        yield from _table(heads, ([row[column] for column in columns] for row in part.rows), right)
    elif isinstance(part, SectionsPart):
        for index, section in enumerate(part.sections):
            yield from ("",) * (index > 0)
            yield from _table((section.title, *part.heads), section.rows, range(1, len(part.heads) + 1))
    elif isinstance(part, CodePart):
        yield from _fenced(part.language, part.text)
    elif part.lines:
        yield from _fenced("text", "\n".join(part.lines))


def _heading(part: TextPart) -> str:
    return f"{part.subject}: {part.text}" if part.subject else part.text


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int]) -> Iterator[str]:
    flush = set(right)
    yield f"| {' | '.join(map(escaped, heads))} |"
    yield f"| {' | '.join('---:' if column in flush else '---' for column in range(len(heads)))} |"
    for row in rows:
        cells = (f"&nbsp;&nbsp;{escaped(cell.strip())}" if cell[:1] == " " else escaped(cell) for cell in row)
        yield f"| {' | '.join(cells)} |"


def _fenced(language: str, text: str) -> Iterator[str]:
    """Yield a block of text whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", text.rstrip("\n"), fence)


@cache
def template(name: str) -> Template:
    """Return a template of ``templates``: of a page, whose texts it escapes, or of a script."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415 - loaded where a page is written
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(
        loader=PackageLoader("capacity_tui.engine.present"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["json"] = json.dumps
    environment.filters["sentence"] = sentence
    environment.filters["svg"] = Markup  # pictures escape their texts where they are made
    environment.globals["verdicts"] = VERDICTS
    environment.tests["kind"] = lambda part, kind: type(part).__name__ == kind
    return environment.get_template(name)
