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
    """Something that a row names in code."""

    text: str  # what stands between the backticks
    kind: str = ""  # the word before it, "key" or "view"; empty for none
    said: tuple[str, ...] = ()  # what it is said to print
    code: int = 0  # the exit code it is said to have
    not_run: str = ""  # why a test cannot run it; empty where one can


@dataclass(frozen=True)
class Row:
    """One feature of a document."""

    feature: str  # what the document calls it
    spans: tuple[Span, ...]  # what does it today
    decided: tuple[str, ...]  # words of docs/decisions.md that stand for it


@dataclass(frozen=True)
class Page:
    """What a page tells."""

    rows: tuple[Row, ...]  # its features, in order
    files: dict[str, str]  # the files it defines, by path
    scripts: tuple[str, ...]  # its blocks of Python that are no file


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
