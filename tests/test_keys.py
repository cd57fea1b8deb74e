"""Keys of plans and of results stand in one place: everywhere else their names do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from sources import name_of, source_files, tree_of

from capacity_tui.engine.keys import Figure, Key

# Plain words that are keys too, and mostly mean something else.
WORDS = {Key.VERSION, Key.TASK, Key.SCENARIOS}
KEYS = ({*map(str, Key)} | {*map(str, Figure)}) - {*map(str, WORDS)}


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
    written_out = [
        f"{name_of(file)}:{constant.lineno} {constant.value}"
        for file in source_files(room)
        if name_of(file) != "engine/keys.py"
        for constant in literals(tree_of(file))
        if constant.value in KEYS
    ]
    assert written_out == [], "write Key.NAME or Figure.NAME of engine/keys.py"
