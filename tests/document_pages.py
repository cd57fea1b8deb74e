"""Reads the pages of docs/documents: the files a page defines, and what each row says does the thing today."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = tuple(sorted((ROOT / "docs" / "documents").glob("*.md")))
# A line "`job.yaml`:" and a block below it are a file.
_A_FILE = re.compile(r"^`([\w.~/-]+)`:\n+```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CELLS = re.compile(r"(?<!\\)\|")
# A span of code with the word before it and the note in brackets behind it.
_SPAN = re.compile(
    r"(?:\b(keys?|views?) )?(`[^`]+`(?:(?:,| and| or) `[^`]+`)*)(?: \(((?:says|ends with|not run)[^)]*)\))?"
)
_DECIDED = re.compile(r"\[decided\]\(\.\./decisions\.md\) \(\"([^\"]+)\"\)")
_SAYS = re.compile(r'says "([^"]+)"')
_ENDS = re.compile(r"ends with (\d+)")
_NOT_RUN = re.compile(r"not run: (.+)")


@dataclass(frozen=True)
class Span:
    """Something that a row names in code.

    Attributes:
        text: what stands between the backticks.
        kind: the word before it, "key" or "view"; empty for none.
        said: what it is said to print.
        code: the exit code it is said to have.
        not_run: why a test cannot run it; empty where one can.
    """

    text: str
    kind: str = ""
    said: tuple[str, ...] = ()
    code: int = 0
    not_run: str = ""


@dataclass(frozen=True)
class Row:
    """One feature of a document.

    Attributes:
        feature: what the document calls it.
        spans: what does it today.
        decided: words of docs/decisions.md that stand for it.
    """

    feature: str
    spans: tuple[Span, ...]
    decided: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """What a page tells.

    Attributes:
        rows: its features, in order.
        files: the files it defines, by path.
        scripts: its blocks of Python that are no file.
    """

    rows: tuple[Row, ...]
    files: dict[str, str]
    scripts: tuple[str, ...]


def read_page(path: Path) -> Page:
    """Return what a page tells."""
    text = path.read_text("utf-8")
    files = dict(_A_FILE.findall(text))
    scripts = tuple(block for block in _PYTHON.findall(text) if block not in files.values())
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip().replace("\\|", "|") for cell in _CELLS.split(line)[1:-1]] for line in lines]
    heads = {number for number, row in enumerate(cells[1:]) if set("".join(row)) <= set("-: ")}
    wrong = [row for row in cells if len(row) != 3]
    assert not wrong, f"{path.name}: not three columns: {wrong}"
    rows = [row for number, row in enumerate(cells) if number not in heads and number - 1 not in heads]
    return Page(tuple(_row(*row[:2]) for row in rows), files, scripts)


def _row(feature: str, today: str) -> Row:
    spans = [
        Span(
            text,
            kind.rstrip("s") if number == 0 or kind.endswith("s") else "",
            tuple(_SAYS.findall(note)),
            int(code[1]) if (code := _ENDS.search(note)) else 0,
            reason[1] if (reason := _NOT_RUN.search(note)) else "",
        )
        for kind, texts, note in _SPAN.findall(today)
        for number, text in enumerate(re.findall(r"`([^`]+)`", texts))
    ]
    return Row(feature, tuple(spans), tuple(_DECIDED.findall(today)))
