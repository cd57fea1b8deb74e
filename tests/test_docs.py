"""What the pages for developers name is there: files, and the functions, classes and tests in them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")))
FOLDERS = r"(?:engine|tui|profiles|themes|tests|tools|benchmarks|screenshots|docs|\.ci)"
# `engine/plan/edit.py`, `tests/tui/`, `tests/tui/test_session.py::test_name`
A_PATH = re.compile(rf"`({FOLDERS}/[\w./*-]*)(?:::(\w+))?(?:\[[^]`]*\])?`")
# `Name.method` in `file.py`, `one` and `other` in `file.py`
A_NAME = re.compile(rf"((?:`[\w.]+`(?:, | and ))*`[\w.]+`)\s+in\s+`({FOLDERS}/[\w./-]*\.py)`")
A_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@cache
def definitions(file: str) -> frozenset[str]:
    """Return the dotted names that a file defines."""
    return frozenset(_defined(ast.parse(text_of(file)).body))


def _defined(body: list[ast.stmt], above: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield above + node.name
            if isinstance(node, ast.ClassDef):
                yield from _defined(node.body, f"{above}{node.name}.")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield above + node.target.id
        elif isinstance(node, ast.Assign):
            yield from (above + target.id for target in node.targets if isinstance(target, ast.Name))


def named(page: str) -> set[tuple[str, str]]:
    """Return the names of a page and the files they are said to be in."""
    text = text_of(page)
    pairs = {(name, file) for file, name in A_PATH.findall(text) if name}
    return pairs | {(name, file) for names, file in A_NAME.findall(text) for name in re.findall(r"[\w.]+", names)
                    if name != "and"}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    text = text_of(page)
    paths = {path for path, _ in A_PATH.findall(text)}
    assert [path for path in sorted(paths) if not list(ROOT.glob(path.rstrip("/")))] == []
    assert [link for link in A_LINK.findall(text) if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_name_that_a_page_gives_with_its_file_is_in_it(page: str) -> None:
    assert [(name, file) for name, file in sorted(named(page)) if name not in definitions(file)] == []


def linked_from(page: str) -> set[str]:
    """Return the pages that a page links to."""
    beside = (ROOT / page).parent
    return {os.path.relpath(beside / link, ROOT) for link in A_LINK.findall(text_of(page)) if link.endswith(".md")}


def test_every_page_is_found_from_the_readme() -> None:
    found, new = set[str](), {"README.md"}
    while new:
        found |= new
        new = {link for page in new for link in linked_from(page)} - found
    assert [page for page in PAGES if page not in found] == []


def test_a_name_that_is_gone_would_be_found() -> None:
    assert len(named("docs/architecture.md")) > 50
    assert "Table.find" in definitions("engine/catalog/table.py")
    assert "Table.lost" not in definitions("engine/catalog/table.py")
