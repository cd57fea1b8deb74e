"""Python scripts that train or serve: what they call, and what they assign to a configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import cast

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.scripts.shell_words import calculated
from capacity_tui.engine.plan.imports.tools import Tool, tools

_IMPORT = re.compile(r"^(?:from\s+[\w.]+\s+import\s|import\s+\w)", re.MULTILINE)

_LOADS = "from_pretrained"

_MODEL = "Model"

_OPTION = "--"  # Before the name of an option that a script has itself: a variable may be called the same
_LIBRARIES = frozenset({"torch", "jnp", "jax", "np", "transformers"})  # What number types and the like are named of

_TYPES: Mapping[str, Callable[[str | int | float], str | int | float]] = {"int": int, "float": float, "str": str}

_TRUE_TODAY = frozenset({"is_bfloat16_supported", "is_bf16_supported", "is_available"})
"""What scripts ask of the device that every one since 2020 answers with yes."""

_ENVIRONMENT = frozenset({"getenv", "environ.get"})  # What returns a variable of the shell, or a default


class OfARun(str):
    """A value as it is written that only running the script tells."""

    __slots__ = ()


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
    """Leaves out what a script never does, as ``if False: model = from_pretrained("saved")`` of a notebook.

    What a script sets itself, or where nothing is given, decides too: ``if arguments.load_in_8bit: ...``.
    """

    def __init__(self, constants: Mapping[str, Plain]) -> None:
        self._constants = constants

    def visit_If(self, node: ast.If) -> ast.If | list[ast.stmt]:
        holds: Plain = None
        if isinstance(node.test, ast.Constant | ast.Attribute | ast.Name):
            with suppress(ValueError):
                holds = _literal(node.test, self._constants)
        if holds is False or (isinstance(node.test, ast.Constant) and not holds):
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


def calls(
    text: str, name: str, given: Mapping[str, Plain] = MappingProxyType({})
) -> Iterator[tuple[Document, Tool, str]]:
    """Yield the arguments of calls that a tool knows, the tool, and what is called, in the order of the script.

    Args:
        given: the options that it is started with.
    """
    tree = ast.parse(text)
    constants = {**dict(_constants(tree)), **given, **{f"{_OPTION}{name}": value for name, value in given.items()}}
    with suppress(RecursionError):
        tree = _Reached(constants).visit(tree)
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    for call in sorted(nodes, key=lambda node: node.lineno):
        called = _called(call)
        owner = _caller(called)
        if owner is not None:
            yield _arguments(call, constants, name), owner, called


def _caller(called: str) -> Tool | None:
    """Return the tool whose function or class is called; None for another."""
    return next((candidate for candidate in tools().values() if called in candidate.calls), None)


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
            if isinstance(value, ast.Call) and _caller(_called(value)) is None:
                self.by[target] = ast.unparse(value.func)
                words = cast("dict[str, Plain]", _arguments(value, self._constants, self._name).data)
                self._arguments = {key: word for key, word in words.items() if not isinstance(word, OfARun)}
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
    if _caller(whole := f"{base}.{function.attr}") is not None:
        return whole
    return "" if function.attr == _LOADS and _MODEL not in base else function.attr


def _constants(tree: ast.AST) -> Iterator[tuple[str, Plain]]:
    """Yield names that a script gives a plain value: variables, fields of classes, and defaults of its own options."""
    plain = dict(_assigned(ast.walk(tree), {}))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "add_argument":
            yield from _own_option(node, plain)
        if isinstance(node, ast.FunctionDef):
            yield from _own_arguments(node.args, plain)
    yield from _assigned(ast.walk(tree), plain)


def _own_arguments(given: ast.arguments, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield the defaults of the arguments of a function, as ``def train(rank=16, batch_size=4)`` has them."""
    positional = [*given.posonlyargs, *given.args]
    pairs = [*zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)]
    for argument, default in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
        with suppress(ValueError):
            if default is not None and (value := _literal(default, constants)) is not None:
                yield argument.arg, value


def _own_option(call: ast.Call, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield the default of an option that a script has itself, under the name that it is read by."""
    words = {word.arg: word.value for word in call.keywords}
    names = [name for name in map(_constant, call.args) if isinstance(name, str) and name.startswith("--")]
    if names and "default" in words:
        with suppress(ValueError):
            yield f"{_OPTION}{names[0].lstrip('-').replace('-', '_')}", _literal(words["default"], constants)


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
        try:
            data[key] = _literal(value, constants)
        except ValueError:
            data[key] = OfARun(ast.unparse(value))
    return Document(data, name, lines)


def _literal(node: ast.expr, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of an expression; ``torch.bfloat16`` is its last name, ``arguments.rank`` what a script sets so.

    Raises:
        ValueError: only running the script tells it.
    """
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(node, constants)
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(element, constants) for element in node.elts]
    if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return _decided(node, constants)
    if isinstance(node, ast.Call):
        return _made(node, constants)
    value: object = calculated(node) if isinstance(node, ast.BinOp) else ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | list | dict | None):
        raise ValueError(type(value).__name__)
    return value


def _named(node: ast.Name | ast.Attribute, constants: Mapping[str, Plain]) -> Plain:
    """Return what a name stands for.

    Raises:
        ValueError: the script does not say it.
    """
    name = node.id if isinstance(node, ast.Name) else node.attr
    if isinstance(node, ast.Attribute) and f"{_OPTION}{name}" in constants:
        return constants[f"{_OPTION}{name}"]
    if name in constants:
        return constants[name]
    first: ast.expr = node
    while isinstance(first, ast.Attribute):
        first = first.value
    if node is first or not isinstance(first, ast.Name) or not (first.id in _LIBRARIES or first.id[0].isupper()):
        raise ValueError(name)
    return name


def _decided(node: ast.BoolOp | ast.UnaryOp, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of ``a or b``, the first that is not empty; of ``a and b`` and ``not a`` whether they hold.

    Raises:
        ValueError: only running the script tells it.
    """
    if isinstance(node, ast.UnaryOp):
        return not _literal(node.operand, constants)
    if isinstance(node.op, ast.And):
        return all(bool(_literal(value, constants)) for value in node.values)
    for value in node.values:
        with suppress(ValueError):
            if (first := _literal(value, constants)) or value is node.values[-1]:
                return first
    raise ValueError(ast.unparse(node))


def _made(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return a variable's default, that of a class's field, or either as a number: ``int(os.getenv("RANK", "8"))``.

    Raises:
        ValueError: another call.
    """
    called = ast.unparse(call.func)
    if called.rpartition(".")[2] in _TRUE_TODAY:
        return True
    if called in _TYPES and len(call.args) == 1:
        value = _literal(call.args[0], constants)
        if isinstance(value, str | int | float):
            return _TYPES[called](value)
    if called.removeprefix("os.") in _ENVIRONMENT and len(call.args) == 2:
        return _literal(call.args[1], constants)
    default = next((word.value for word in call.keywords if word.arg == "default"), None)
    if called.rpartition(".")[2].casefold() == "field" and default is not None:
        return _literal(default, constants)
    raise ValueError(called)


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
