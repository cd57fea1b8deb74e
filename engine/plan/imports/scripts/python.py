"""Python scripts that train or serve: what they call, and what they assign to a configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from types import MappingProxyType
from typing import cast

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.scripts.expressions import (
    FUNCTIONS,
    OPTION,
    SHELL,
    STARTED,
    assigned,
    literal,
    within,
)
from capacity_tui.engine.plan.imports.scripts.modules import imported
from capacity_tui.engine.plan.imports.tools import Tool, option_name, tools

_IMPORT = re.compile(r"^(?:from\s+[\w.]+\s+import\s|import\s+\w)", re.MULTILINE)

_LOADS = "from_pretrained"

_MODEL = re.compile(r"Model|For[A-Z]")  # In the name of a class of models: AutoModel, LlamaForCausalLM

_RETURNED = "return"  # What stands for the configuration that a function returns without giving it a name

_TURNS_ON = frozenset({"gradient_checkpointing_enable"})  # Calls that count only where a script surely makes them


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
            return Document(dict(assigned(body, {})), name, lines) if lines else None
    return None


def calls(
    text: str,
    name: str,
    given: Mapping[str, Plain] = MappingProxyType({}),
    environment: Mapping[str, str] = MappingProxyType({}),
    module: Callable[[str], str | None] | None = None,
) -> Iterator[tuple[Document, Tool, str]]:
    """Yield the arguments of calls that a tool knows, the tool, and what is called, in the order of the script.

    Args:
        given: the options that it is started with.
        environment: the variables of the shell that starts it.
        module: returns the text of a module that lies beside it, by its dotted name; None for others.
    """
    tree = ast.parse(text)
    constants: dict[str, Plain] = dict(imported(tree, module) if module is not None else ())
    constants |= {f"{SHELL}{variable}": value for variable, value in environment.items()}
    constants |= {f"{before}{option}": value for option, value in given.items() for before in (OPTION, STARTED)}
    constants |= dict(_behind_dots(tree, constants))
    constants |= dict(assigned(within(tree), constants))
    constants |= dict(_made_global(tree, constants))
    with suppress(RecursionError):
        reached = _reached_calls(tree, constants, constants, tree)
        for call, known in sorted(reached, key=lambda pair: pair[0].lineno):
            called = _called(call)
            owner = _caller(called)
            if owner is not None:
                yield _arguments(call, known, name), owner, called


def _made_global(tree: ast.AST, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield names of a script that a function of it gives a plain value, as ``global BATCH`` lets it."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            names = {name for node in within(function) if isinstance(node, ast.Global) for name in node.names}
            known = _local(function, constants) if names else {}
            yield from ((name, known[name]) for name in names if name in known)


def _reached_calls(
    node: ast.AST, constants: Mapping[str, Plain], outer: Mapping[str, Plain], tree: ast.AST
) -> Iterator[tuple[ast.Call, Mapping[str, Plain]]]:
    """Yield the calls in a part of a script with the names that have a plain value there: of its function, and outer.

    What a script never does is left out, as ``if False: model = from_pretrained("saved")`` of a notebook. What it sets
    itself, or where nothing is given, decides too: ``if arguments.load_in_8bit: ...``.

    Args:
        outer: the names that functions in it see: none of a class around them.
    """
    holds: Plain = None
    if isinstance(node, ast.If):
        with suppress(ValueError):
            holds = literal(node.test, constants)
            holds = bool(holds) if isinstance(node.test, ast.Constant) else holds
    for field, children in ast.iter_fields(node):
        if isinstance(node, ast.If) and holds is {"body": False, "orelse": True}.get(field, ""):
            continue
        for child in children if isinstance(children, list) else [children]:
            if isinstance(child, FUNCTIONS):
                inner = _inside(child, outer, tree)
                yield from _reached_calls(child, inner, inner, tree)
            elif isinstance(child, ast.ClassDef):
                yield from _reached_calls(child, _local(child, constants), outer, tree)
            elif isinstance(child, ast.AST):
                is_open = isinstance(node, ast.If) and holds is None and field != "test"
                for call, known in _reached_calls(child, constants, outer, tree):
                    if not (is_open and _called(call) in _TURNS_ON):
                        yield call, known
                if isinstance(child, ast.Call):
                    yield child, constants


def _inside(
    function: ast.FunctionDef | ast.AsyncFunctionDef, outer: Mapping[str, Plain], tree: ast.AST
) -> Mapping[str, Plain]:
    """Return the names that have a plain value in a function, its arguments among them."""
    return _local(function, outer, dict(_own_arguments(function, outer, tree)))


def _local(
    part: ast.AST, outer: Mapping[str, Plain], arguments: Mapping[str, Plain] = MappingProxyType({})
) -> dict[str, Plain]:
    """Return the names that have a plain value in a class, or a function of arguments: its own hide those around it."""
    stored = {node.id for node in within(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(part, FUNCTIONS):
        stored |= {node.arg for node in within(part.args) if isinstance(node, ast.arg)}
    known = {**{name: value for name, value in outer.items() if name not in stored}, **arguments}
    return known | dict(assigned(within(part), known))


def variables_set(text: str) -> Mapping[str, str]:
    """Return the variables of the shell that a script sets itself: ``os.environ["CUDA_VISIBLE_DEVICES"] = "0"``."""
    tree = ast.parse(text)
    constants = dict(assigned(within(tree), {}))
    variables: dict[str, str] = {}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Subscript) and ast.unparse(target.value).removeprefix("os.") == "environ":
            with suppress(ValueError):
                variables[str(_constant(target.slice))] = str(literal(cast("ast.Assign", node).value, constants))
    return variables


def _caller(called: str) -> Tool | None:
    """Return the tool whose function or class is called; None for another."""
    return next((candidate for candidate in tools().values() if called in candidate.calls), None)


def assignments(text: str, name: str) -> Iterator[tuple[Document, str]]:
    """Yield what functions of a script assign to parts of a configuration, and the function that made it.

    ``config = llama3_8b()`` makes one, ``config.training.steps = 100`` sets an option of it; of a value that is called
    into being, as ``FullAC.Config()``, the name counts, and arguments are options below it. So they are of a call whose
    value is returned, as ``Trainer.Config(training=TrainingConfig(steps=100))``.
    """
    tree = ast.parse(text)
    outside = dict(assigned(tree.body, {}))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Module):
            made = _Made(name, {**outside, **dict(assigned(function.body, outside))})
            statements = [*_statements(function.body)]
            for node in statements:
                if isinstance(node, ast.Assign) and len(node.targets) == 1:
                    made.assign(ast.unparse(node.targets[0]), node.value)
            made.take_returned(node.value for node in statements if isinstance(node, ast.Return))
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
        self._calls: dict[str, ast.Call] = {}  # likewise

    def take_returned(self, values: Iterable[ast.expr | None]) -> None:
        """Take the parts of calls whose values are returned."""
        for value in values:
            call = self._call(value)
            parts = [] if call is None else [(word.arg, self._call(word.value)) for word in call.keywords]
            if call is not None and any(part is not None for _, part in parts):
                self.assign(_RETURNED, call)
                for option, part in parts:
                    if part is not None:
                        self.assign(f"{_RETURNED}.{option}", part)

    def _call(self, value: ast.expr | None) -> ast.Call | None:
        """Return the call that a value is, or that made what it names; None for others."""
        made = self._calls.get(value.id) if isinstance(value, ast.Name) else value
        return made if isinstance(made, ast.Call) else None

    def assign(self, target: str, value: ast.expr) -> None:
        """Take one assignment, with the arguments of the call that made what it is to."""
        base, dot, option = target.partition(".")
        if not dot:
            if isinstance(value, ast.Call) and _caller(_called(value)) is None:
                self.by[target] = ast.unparse(value.func)
                words = cast("dict[str, Plain]", _arguments(value, self._constants, self._name).data)
                self._arguments = {key: word for key, word in words.items() if not isinstance(word, OfARun)}
                self._calls[target] = value
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
            if not value.keywords or "." in call:
                self.data[option], self.lines[option,] = call, value.lineno
            given = {f"{option}.argument": part for part in value.args[:1]}
            given |= {f"{option}.{word.arg}": word.value for word in value.keywords if word.arg}
        for key, part in given.items():
            self.lines[key,] = part.lineno
            part_of, _, other = ast.unparse(part).partition(".")
            if part_of in self.by:  # cfg.dataset.seq_length = cfg.model.seq_length
                self.data |= {key: self.data[other]} if other in self.data else {}
                continue
            if isinstance(part, ast.List) and part.elts and all(isinstance(one, ast.Call) for one in part.elts):
                self.data[key] = [ast.unparse(one) for one in part.elts]  # converters=[Float8LinearConverter.Config()]
            with suppress(ValueError):
                self.data[key] = literal(part, self._constants)


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
    return "" if function.attr == _LOADS and _MODEL.search(base) is None else function.attr


def _behind_dots(tree: ast.AST, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield what stands behind a dot and has a plain value: fields of classes, and a script's own options."""
    plain = {**constants, **dict(assigned(within(tree), constants))}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            fields = ((f"{OPTION}{field}", value) for field, value in assigned(within(node), plain))
            yield from ((field, value) for field, value in fields if field not in constants)
    of_parsers = [node for node in nodes if isinstance(node, ast.Call)]
    later = [word for call in of_parsers if _called(call) == "set_defaults" for word in call.keywords]
    defaults = {word.arg: word.value for word in later if word.arg}
    changed = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    is_open = len(defaults) < len({word.arg for word in later})  # set_defaults(**settings)
    for call in of_parsers:
        if _called(call) == "add_argument":
            yield from _own_option(call, plain, defaults, None if is_open else changed)


def _own_arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef, constants: Mapping[str, Plain], tree: ast.AST
) -> Iterator[tuple[str, Plain]]:
    """Yield the arguments of a function: as the script first calls it, as it is started, or by default.

    ``def train(rank=16)`` has 16; behind ``train(rank=8)`` it has 8, and what only a run tells is left out.
    """
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [*zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)]
    values = {one.arg: value for one, value in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]}
    started = {one.arg: f"{STARTED}{one.arg}" for one in (*positional, *given.kwonlyargs)}
    passed: dict[str, ast.expr] = {}
    there = constants
    if (first := _first_call(function.name, tree)) is not None:
        call, around = first
        passed = {one.arg: value for one, value in zip(positional, call.args, strict=False)}
        passed |= {word.arg: word.value for word in call.keywords if word.arg}
        there = constants if isinstance(around, ast.Module) else _local(around, constants)
    yield from ((name, constants[key]) for name, key in started.items() if key in constants and name not in passed)
    for name, value in {**values, **passed}.items():
        with suppress(ValueError):
            if value is not None and (started.get(name) not in constants or name in passed):
                yield name, literal(value, there if name in passed else constants)


def _first_call(name: str, tree: ast.AST) -> tuple[ast.Call, ast.AST] | None:
    """Return the call of a function that stands first in a script, and what it stands in; None where there is none."""
    made = (
        (node, around)
        for around in ast.walk(tree)
        if isinstance(around, (ast.Module, ast.ClassDef, *FUNCTIONS))
        for node in within(around)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    )
    return min(made, key=lambda pair: (pair[0].lineno, pair[0].col_offset), default=None)


def _own_option(
    call: ast.Call, constants: Mapping[str, Plain], defaults: Mapping[str, ast.expr], changed: Set[str] | None
) -> Iterator[tuple[str, Plain]]:
    """Yield an option that a script has itself under the name that it is read by: as it is started, or by default.

    Args:
        defaults: those that ``set_defaults`` gives, by that name.
        changed: what the script changes behind a dot, where a switch may be set; None where that may be any.
    """
    words = {word.arg: word.value for word in call.keywords if word.arg}
    names = [name for name in map(_constant, call.args) if isinstance(name, str) and name.startswith("-")]
    first = next((name for name in names if name.startswith("--")), names[0] if names else "")
    name = str(_constant(words["dest"])) if "dest" in words else option_name(first)
    action = str(_constant(words["action"])) if "action" in words else ""
    switched = {"store_true": True, "store_false": False}.get(action)
    started = [constants[key] for one in names if (key := f"{STARTED}{option_name(one)}") in constants]
    default = defaults.get(name, words.get("default"))
    if started:
        yield f"{OPTION}{name}", started[-1] if switched is None else switched
    elif name and default is not None:
        with suppress(ValueError):
            yield f"{OPTION}{name}", literal(default, constants)
    elif name and switched is not None and changed is not None and name not in changed:
        yield f"{OPTION}{name}", not switched


def _arguments(call: ast.Call, constants: Mapping[str, Plain], name: str) -> Document:
    """Return the arguments of a call; the first one without a name is its ``model``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = [("model", argument) for argument in call.args[:1]]
    given += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
    for key, value in given:
        lines[key,] = value.lineno
        try:
            data[key] = literal(value, constants)
        except ValueError:
            data[key] = OfARun(ast.unparse(value))
    return Document(data, name, lines)


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
