"""Parts of a report as text in one of the forms that reports are written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from capacity_tui.engine.present.html import template
from capacity_tui.engine.present.markdown import escaped
from capacity_tui.engine.present.parts import Part, TextPart
from capacity_tui.engine.present.results import to_json, to_yaml
from capacity_tui.engine.printable import printable_lines


def write_parts(form: str, title: str, parts: Iterable[Part], data: Callable[[], object]) -> str:
    """Return a report as json, yaml, markdown or html.

    Args:
        form: one of these.
        title: of the page.
        parts: what the page says.
        data: returns the same for scripts.
    """
    if form == "json":
        return to_json(data())
    if form == "yaml":
        return to_yaml(data())
    return parts_as_markdown(title, parts) if form == "markdown" else parts_as_html(title, parts)


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
