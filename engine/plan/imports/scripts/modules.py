"""What a Python script takes from modules that lie beside it: names with plain values, and fields of classes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.expressions import OPTION, assigned


def imported(tree: ast.Module, module: Callable[[str], str | None]) -> Iterator[tuple[str, Plain]]:
    """Yield names that a script imports from modules beside it, as it writes them: ``config.MODEL``, ``RANK``.

    Args:
        module: returns the text of a module by its dotted name; None for one that does not lie there.
    """
    classes = dict(_classes(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _behind(alias.asname or alias.name, _names(module(alias.name)))
        elif isinstance(node, ast.ImportFrom):
            text, base = module(node.module or ""), f"{node.module}." if node.module else ""
            names = _names(text)
            classes |= dict(_classes(parsed(text)))
            for alias in node.names:
                name = alias.asname or alias.name
                yield from ([*names.items()] if alias.name == "*" else [])
                yield from ([(name, names[alias.name])] if alias.name in names else [])
                fields = classes.get(alias.name, {})
                yield from (*_behind(name, fields), *((f"{OPTION}{field}", value) for field, value in fields.items()))
                yield from ((key.replace(alias.name, name, 1), value) for key, value in _made(parsed(text), classes))
                yield from _behind(name, _names(module(f"{base}{alias.name}")))
    yield from _made(tree, classes)


def _behind(name: str, values: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    return ((f"{name}.{field}", value) for field, value in values.items())


def parsed(text: str | None) -> ast.Module:
    """Return a module; an empty one where it cannot be read."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(text or "")
    return ast.Module([], [])


def _names(text: str | None) -> Mapping[str, Plain]:
    """Return the names of a module that it gives a plain value itself."""
    names = dict(assigned(parsed(text).body, {}))
    return {name: dict(value) if isinstance(value, dict) else value for name, value in names.items()}


def _classes(tree: ast.Module) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    """Yield the classes of a module with their fields that have a plain value."""
    outside = dict(assigned(tree.body, {}))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, dict(assigned(node.body, outside))


def _made(tree: ast.Module, classes: Mapping[str, Mapping[str, Plain]]) -> Iterator[tuple[str, Plain]]:
    """Yield the fields of what is made of known classes without arguments: ``settings = Settings()``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            fields = classes.get(ast.unparse(node.value.func), {}) if not node.value.args else {}
            given = {word.arg for word in node.value.keywords}
            known = {field: value for field, value in fields.items() if field not in given}
            yield from _behind(node.targets[0].id, known)
