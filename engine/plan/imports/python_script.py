"""Calls in a Python script as documents: arguments of training, adapters, models. Nothing of the script is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.tools import Tool, tools

_IMPORT = re.compile(r"^(?:from\s+[\w.]+\s+import\s|import\s+\w)", re.MULTILINE)
_LOADS = "from_pretrained"
_MODEL = "Model"


def is_python(text: str) -> bool:
    """Whether a text is a Python script."""
    if _IMPORT.search(text) is None:
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def calls(text: str, name: str) -> Iterator[tuple[Document, Tool]]:
    """Yield the arguments of calls that a tool knows, in the order of the script."""
    tree = ast.parse(text)
    constants = dict(_constants(tree))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in sorted(nodes, key=lambda node: node.lineno):
        called = _called(call)
        owner = next((candidate for candidate in tools().values() if called in candidate.calls), None)
        if owner is not None:
            yield _document(call, constants, name), owner


def _called(call: ast.Call) -> str:
    """Return what is called; loading counts where a model is loaded, not its tokenizer."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id
    if not isinstance(function, ast.Attribute):
        return ""
    base = function.value.id if isinstance(function.value, ast.Name) else ""
    return "" if function.attr == _LOADS and _MODEL not in base else function.attr


def _constants(tree: ast.AST) -> Iterator[tuple[str, Plain]]:
    """Yield names that a script gives a plain value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            with suppress(ValueError):
                yield node.targets[0].id, _plain(node.value, {})


def _document(call: ast.Call, constants: Mapping[str, Plain], name: str) -> Document:
    """Return the arguments of a call; the first one without a name is its ``model``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = [("model", argument) for argument in call.args[:1]]
    given += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
    for key, value in given:
        lines[key,] = value.lineno
        with suppress(ValueError):
            data[key] = _plain(value, constants)
    return Document(data, name, lines)


def _plain(node: ast.expr, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of an expression; ``torch.bfloat16`` is its last name.

    Raises:
        ValueError: only running the script tells it.
    """
    if isinstance(node, ast.Name):
        if node.id in constants:
            return constants[node.id]
        raise ValueError(node.id)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.List | ast.Tuple):
        return [_plain(element, constants) for element in node.elts]
    value = ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | list | dict | None):
        raise ValueError(type(value).__name__)
    return value
