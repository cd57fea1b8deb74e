"""Keys of plans and of results stand in one place: everywhere else their names do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from capacity_tui.engine.keys import Figure, Key

ROOT = Path(__file__).parents[1]
# Plain words that are keys too, and mostly mean something else.
WORDS = {Key.VERSION, Key.TASK, Key.SCENARIOS}
KEYS = ({*map(str, Key)} | {*map(str, Figure)}) - {*map(str, WORDS)}


@cache
def parsed() -> tuple[tuple[str, ast.Module], ...]:
    files = (file for room in ("engine", "tui") for file in sorted((ROOT / room).rglob("*.py")))
    found = ((str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")) for file in files)
    return tuple((name, ast.parse(text)) for name, text in found if name != "engine/keys.py")


def literals(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are values: not those of annotations, docstrings and f-strings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        if isinstance(child, ast.Subscript) and isinstance(child.value, ast.Name) and child.value.id == "Literal":
            continue
        if isinstance(child, ast.Constant):
            yield child
        yield from literals(child)


@pytest.mark.parametrize("room", ["engine", "tui"])
def test_keys_stand_as_names(room: str) -> None:
    found = [
        f"{name}:{constant.lineno} {constant.value}"
        for name, tree in parsed()
        if name.startswith(f"{room}/")
        for constant in literals(tree)
        if constant.value in KEYS
    ]
    assert found == [], "write Key.NAME or Figure.NAME of engine/keys.py"
