"""The program's source files, each read and parsed once a run: for tests of what stands in the code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def source_files(*folders: str) -> tuple[Path, ...]:
    """Return the Python files below some folders of the repository, of the engine and the screen by default."""
    return tuple(file for folder in folders or ("engine", "tui") for file in sorted((ROOT / folder).rglob("*.py")))


def name_of(file: Path) -> str:
    """Return the path of a file below the repository's root."""
    return file.relative_to(ROOT).as_posix()


@cache
def text_of(file: Path) -> str:
    """Return what a file holds."""
    return file.read_text("utf-8")


@cache
def tree_of(file: Path) -> ast.Module:
    """Return a file, parsed."""
    return ast.parse(text_of(file))


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file, those above before those below."""
    return tuple(ast.walk(tree_of(file)))


@cache
def identifiers_of(file: Path) -> tuple[tuple[int, str], ...]:
    """Return line and name of all that a file defines: itself, classes, functions, arguments, variables and fields."""
    defined = [(1, file.stem)]
    for node in nodes_of(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            defined.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            defined.append((node.lineno, node.id if isinstance(node, ast.Name) else node.attr))
    return tuple(defined)
