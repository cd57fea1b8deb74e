"""Python scripts that train or serve: what they call, and what they assign to a configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import cast

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.scripts.shell_words import calculated
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


class _Reached(ast.NodeTransformer):
    """Leaves out what a script never does, as ``if False: model = from_pretrained("saved")`` of a notebook."""

    def visit_If(self, node: ast.If) -> ast.If | list[ast.stmt]:
        if isinstance(node.test, ast.Constant) and not node.test.value:
            return [self.visit(one) for one in node.orelse]
        self.generic_visit(node)
        return node


def settings_alone(text: str, name: str) -> Document | None:
    """Return the settings of a text that is assignments of Python alone, as nanoGPT's files are; None for others."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        body = ast.parse(text).body
        texts = (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)
        if all(is_text or isinstance(node, ast.Assign) for is_text, node in zip(texts, body, strict=True)):
            lines: dict[KeyPath, int] = {
                (target.id,): node.lineno
                for node in body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            return Document(dict(_assigned(body, {})), name, lines) if lines else None
    return None


def calls(text: str, name: str) -> Iterator[tuple[Document, Tool, str]]:
    """Yield the arguments of calls that a tool knows, the tool, and what is called, in the order of the script."""
    tree = ast.parse(text)
    with suppress(RecursionError):
        tree = _Reached().visit(tree)
    constants = dict(_constants(tree))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in sorted(nodes, key=lambda node: node.lineno):
        called = _called(call)
        owner = next((candidate for candidate in tools().values() if called in candidate.calls), None)
        if owner is not None:
            yield _arguments(call, constants, name), owner, called


def assignments(text: str, name: str) -> Iterator[tuple[Document, str]]:
    """Yield what functions of a script assign to parts of a configuration, and the function that made it.

    ``config = llama3_8b()`` makes one, ``config.training.steps = 100`` sets an option of it; of a value that is called
    into being, as ``FullAC.Config()``, the name counts, and arguments are options below it.
    """
    tree = ast.parse(text)
    outside = dict(_assigned(tree.body, {}))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Module):
            made = _Made(name, {**outside, **dict(_assigned(function.body, outside))})
            for node in _statements(function.body):
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    made.assign(ast.unparse(node.targets[0]), node.value, node.lineno)
            if made.data:
                yield Document(made.data, name, made.lines), next(iter(made.by.values()))


class _Made:
    """Options of the configurations that a function makes."""

    def __init__(self, name: str, constants: Mapping[str, Plain]) -> None:
        self._name, self._constants = name, constants
        self.data: dict[str, Plain] = {}
        self.lines: dict[KeyPath, int] = {}
        self.by: dict[str, str] = {}  # what made each, by its variable
        self._arguments: dict[str, Plain] = {}

    def assign(self, target: str, value: ast.expr, line: int) -> None:
        """Take one assignment, with the arguments of the call that made what it is to."""
        base, dot, option = target.partition(".")
        if not dot:
            if isinstance(value, ast.Call):
                self.by[target] = ast.unparse(value.func)
                self._arguments = cast("dict[str, Plain]", _arguments(value, self._constants, self._name).data)
            return
        if base not in self.by:
            return
        self.data, self._arguments = {**self._arguments, **self.data}, {}
        given = {option: value}
        if isinstance(value, ast.Call):
            # What a chain begins with names it: Bridge.from_hf_pretrained("a model").to_provider().
            while isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
                value = value.func.value
            call = ast.unparse(value.func)
            if not value.keywords or call.endswith(".Config"):
                self.data[option], self.lines[option,] = call, line
            given = {f"{option}.argument": part for part in value.args[:1]}
            given |= {f"{option}.{word.arg}": word.value for word in value.keywords if word.arg}
        for key, part in given.items():
            self.lines[key,] = line
            part_of, _, other = ast.unparse(part).partition(".")
            if part_of in self.by:  # cfg.dataset.seq_length = cfg.model.seq_length
                self.data |= {key: self.data[other]} if other in self.data else {}
                continue
            with suppress(ValueError):
                self.data[key] = _literal(part, self._constants)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, those below conditions and the like among them, but no functions."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.With | ast.Try):
            yield from _statements((*node.body, *getattr(node, "orelse", ())))


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
    yield from _assigned(ast.walk(tree), {})


def _assigned(nodes: Iterable[ast.AST], constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield names that some statements give a plain value."""
    for node in nodes:
        is_single = isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and len(node.targets) == 1)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not is_single or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name):
            with suppress(ValueError):
                yield target.id, _literal(node.value, constants)


def _arguments(call: ast.Call, constants: Mapping[str, Plain], name: str) -> Document:
    """Return the arguments of a call; the first one without a name is its ``model``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = [("model", argument) for argument in call.args[:1]]
    given += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
    for key, value in given:
        lines[key,] = value.lineno
        with suppress(ValueError):
            data[key] = _literal(value, constants)
    return Document(data, name, lines)


def _literal(node: ast.expr, constants: Mapping[str, Plain]) -> Plain:
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
        return [_literal(element, constants) for element in node.elts]
    value = calculated(node) if isinstance(node, ast.BinOp) else ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | list | dict | None):
        raise ValueError(type(value).__name__)
    return value
