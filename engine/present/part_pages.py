"""Parts of a report as Markdown and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capacity_tui.engine.present.html import template
from capacity_tui.engine.present.markdown import escaped
from capacity_tui.engine.present.parts import Part, TextPart
from capacity_tui.engine.printable import printable_lines


def parts_as_markdown(title: str, parts: Iterable[Part]) -> str:
    """Return parts as Markdown: strong lines are headings, the others items of lists."""
    return printable_lines("\n".join(_lines(title, parts))) + "\n"


def parts_as_html(title: str, parts: Iterable[Part]) -> str:
    """Return parts as a page that needs nothing else."""
    return printable_lines(template("parts.html").render(title=title, parts=tuple(parts)))


def _lines(title: str, parts: Iterable[Part]) -> Iterator[str]:
    yield f"# {escaped(title)}"
    in_list = False
    for part in parts:
        if isinstance(part, TextPart):
            if part.tone == "strong":
                yield from ("", f"## {escaped(part.text)}")
            elif part.text:
                yield from (() if in_list else ("",))
                yield f"- {escaped(part.text)}"
            in_list = part.tone != "strong" and bool(part.text)
            continue
        in_list = False
        yield ""
        yield f"| {' | '.join(map(escaped, part.heads))} |"
        yield f"| {' | '.join('---:' if place in part.right else '---' for place in range(len(part.heads)))} |"
        yield from (f"| {' | '.join(map(escaped, row))} |" for row in part.rows)
