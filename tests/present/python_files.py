"""Configurations that are written in Python, read without running them."""

from __future__ import annotations

import ast


def parts_of(text: str) -> dict[str, object]:
    """Return the arguments of what a module returns: those of calls inside by name, constants as they are."""
    returned = next((node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Return)), None)
    return {word.arg or "": _value(word.value) for word in returned.keywords} if isinstance(returned, ast.Call) else {}


def _value(node: ast.expr) -> object:
    if isinstance(node, ast.Call):
        return {word.arg: _value(word.value) for word in node.keywords}
    return node.value if isinstance(node, ast.Constant) else ast.unparse(node)
