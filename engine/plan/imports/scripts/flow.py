"""What a Python script surely does: the steps that it takes, with the names that have a plain value there."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePath
from types import MappingProxyType
from typing import cast

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.expressions import STARTED, Changed, arguments_of, literal, mapping
from capacity_tui.engine.plan.imports.scripts.statements import FUNCTIONS, assigned, holds, within
from capacity_tui.engine.plan.options.tools import option_name

_COMPILES = "torch.compile"

_BRANCHES = (ast.If, ast.IfExp)

_TURNS_ON = frozenset(
    {"gradient_checkpointing_enable", "enable_gradient_checkpointing", _COMPILES}
)  # Calls that change a model itself

_LEARNS = frozenset({"train", "fit"})  # Calls that train

SETTINGS = re.compile(r"(?:Config|Arguments)$")  # What is called to make settings, which do nothing themselves

_SAVES, _OUTPUT = re.compile(r"save_(?:pretrained|model)"), "output_dir"  # What saves models, and where trainers do

_OWNERS = frozenset({"self", "cls"})  # What methods call the object or the class that they are of

_CONFIGURES = frozenset({"run.Config", "run.Partial"})

_ELSEWHERE = frozenset({"bind", "remote"})  # What has Ray call a function or a class

_OF_CLICK = frozenset({"option", "argument"})  # What decorates functions to give their arguments names

_DEEPEST = 8  # Functions within functions that are followed

_A_MODEL = re.compile(r"model|net\b", re.IGNORECASE)  # What such a call is given that compiles one


Step = tuple[ast.Call | ast.Assign, Mapping[str, Plain], "ast.expr | None"]
"""A call or an assignment, the names of plain values there, and a condition where only a run tells whether it holds."""


def reached(node: ast.AST, constants: Mapping[str, Plain], outer: Mapping[str, Plain], tree: ast.AST) -> Iterator[Step]:
    """Yield the calls and assignments of a script with the names of plain values there: of its function, and outer.

    What a script never does is left out, as ``if False: model = from_pretrained("saved")`` of a notebook. What it sets
    itself, or where nothing is given, decides too: ``if arguments.load_in_8bit: ...``. A call that turns something on
    where only running the script tells whether has the condition as its one argument, called as it is itself.

    Args:
        outer: the names that functions in it see: none of a class around them.
    """
    decided = holds(node, constants)
    for field, children in ast.iter_fields(node):
        is_never = isinstance(node, _BRANCHES) and decided is {"body": False, "orelse": True}.get(field, "")
        if is_never or field == "decorator_list":
            continue
        unless: ast.expr | None = None  # a condition with which the part is left before its end
        parts = children if isinstance(children, list) else [children]
        for place, part in enumerate(parts):
            child = part
            is_left = isinstance(child, ast.If) and isinstance(child.body[-1], ast.Return)
            if isinstance(child, ast.If) and is_left and not _trains(child.body) and _trains(parts[place + 1 :]):
                # What ends before the training does not hold either: if arguments.evaluate: ...; return
                ends: list[ast.stmt] = [] if holds(child, constants) else [ast.copy_location(ast.Return(None), child)]
                child = ast.copy_location(ast.If(child.test, ends or child.body, child.orelse), child)
            if isinstance(child, FUNCTIONS):
                inner = inside(child, outer, tree)
                yield from reached(child, inner, inner, tree)
            elif isinstance(child, ast.ClassDef):
                yield from reached(child, local(child, constants), outer, tree)
            elif isinstance(child, ast.AST):
                branch: ast.expr | None = None
                if isinstance(node, _BRANCHES) and decided is None and field != "test":
                    branch = node.test if field == "body" else _not(node.test)
                condition = branch or unless
                steps = [*reached(child, constants, outer, tree)]
                steps += [(child, constants, None)] if isinstance(child, ast.Call | ast.Assign) else []
                for step, known, inner_branch in steps:
                    yield (_where(step, condition) if condition is not None else step), known, inner_branch or branch
                # What ends a script with an error does not hold where it trains.
                if isinstance(child, ast.If) and is_left:
                    leaves = holds(child, constants)
                    if leaves:
                        break
                    unless = unless if leaves is False else _not(child.test)


def _trains(statements: Sequence[ast.AST]) -> bool:
    """Whether statements call what trains."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    return any(isinstance(node, ast.Call) and called(node) in _LEARNS for node in nodes)


def _not(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _where(step: ast.Call | ast.Assign, test: ast.expr) -> ast.Call | ast.Assign:
    """Return a step that a script takes where a condition holds, with the condition where it changes something."""
    if isinstance(step, ast.Call) and called(step) in _TURNS_ON:
        return ast.copy_location(ast.Call(step.func, step.args, [ast.keyword(called(step), test)]), step)
    if isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Attribute):
        value = ast.copy_location(ast.IfExp(test, step.value, step.targets[0]), step.value)
        return ast.copy_location(ast.Assign(step.targets, value), step)
    return step


def called(call: ast.Call) -> str:
    """Return what is called, by its last name; with what stands before it where that alone says nothing."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id
    if not isinstance(function, ast.Attribute):
        return ""
    whole = ast.unparse(function)
    if whole == _COMPILES:  # a part of it, as a loss, is compiled too
        return whole if any(_A_MODEL.search(ast.unparse(argument)) for argument in call.args) else ""
    return function.attr


def configured(tree: ast.Module) -> ast.Module:
    """Call at once what NeMo-Run is to call later: ``run.Config(Trainer, devices=2)`` is ``Trainer(devices=2)``."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args):
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(base, ast.Name) and f"{base.id}.{called(call)}" in _CONFIGURES:
            call.func, call.args = call.args[0], call.args[1:]
    return tree


def saved_to(call: ast.Call, known: Mapping[str, Plain]) -> Iterator[PurePath]:
    """Yield the folder that a call of a script saves models to."""
    given = call.args[:1] if _SAVES.match(called(call)) else []
    for value in (*given, *(word.value for word in call.keywords if word.arg == _OUTPUT)):
        with suppress(ValueError):
            yield from {PurePath(str(literal(value, known)))} - {PurePath()}


def changed_later(call: ast.Call, steps: Sequence[Step], known: Mapping[str, Plain]) -> Iterator[ast.keyword]:
    """Yield what a script sets behind a dot of what a call made, in one function: ``arguments.max_steps = 100``."""
    made = (step for step, *_ in steps if isinstance(step, ast.Assign) and step.value is call)
    targets = (target for step in made if SETTINGS.search(called(call)) for target in step.targets)
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for step, there, _ in steps:
        target = step.targets[0] if isinstance(step, ast.Assign) and there is known else None
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in names:
            yield ast.keyword(target.attr, cast("ast.Assign", step).value)


def unused(tree: ast.AST, steps: Sequence[Step]) -> Iterator[ast.AST]:
    """Yield the calls that make a configuration under a name which a script that trains never reads.

    ``quantization_config=compressed if arguments.compress else None`` does not where nothing is to be compressed.
    """
    words = ((word.value, known) for step, known, _ in steps if isinstance(step, ast.Call) for word in step.keywords)
    left_out = {part for value, known in words if _is_nothing(value, known) for part in ast.walk(value)}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in left_out)
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
    trains = any(isinstance(node, ast.Call) and called(node) == "train" for node in ast.walk(tree))
    for node in ast.walk(tree) if trains else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and SETTINGS.search(called(node.value)):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            yield from [node.value] if targets and not read & {*targets} else []


def _is_unread(value: ast.expr, calls: Set[ast.AST]) -> bool:
    """Whether a value is made by what only makes settings that are not read: ``AutoConfig.from_pretrained``."""
    base = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else None
    return value not in calls and isinstance(base, ast.Name) and SETTINGS.search(base.id) is not None


def _is_nothing(value: ast.expr, known: Mapping[str, Plain]) -> bool:
    """Whether a choice between two comes to nothing."""
    with suppress(ValueError):
        return isinstance(value, ast.IfExp) and literal(value, known) is None
    return False


def names_behind(calls: Set[ast.AST], tree: ast.AST) -> Set[str]:
    """Return the names on which calls of a script depend, through what it assigns and hands to its functions."""
    nodes = list(ast.walk(tree))
    parameters = {node.name: [one.arg for one in node.args.args] for node in nodes if isinstance(node, FUNCTIONS)}
    made: list[tuple[str, ast.AST]] = []  # names, each with what it is made of
    for node in nodes:
        if isinstance(node, ast.Assign) and not _is_unread(node.value, calls):
            made += [(name, node.value) for target in node.targets for name in _named_in(target)]
        elif isinstance(node, ast.Call):
            made += zip(parameters.get(called(node), ()), node.args, strict=False)
            made += [(word.arg, word.value) for word in node.keywords if word.arg]
        elif isinstance(node, ast.If):
            stored = (one for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
            made += [(one.id, node.test) for one in stored]
    parts = {*calls, *(node.test for node in nodes if isinstance(node, ast.If) and calls & {*ast.walk(node)})}
    behind: set[str] = set()
    while new := {name for part in parts for name in _named_in(part)} - behind:
        behind |= new
        parts = {value for name, value in made if name in new}
    return behind


def inside(
    function: ast.FunctionDef | ast.AsyncFunctionDef, outer: Mapping[str, Plain], tree: ast.AST, depth: int = 0
) -> Mapping[str, Plain]:
    """Return the names that have a plain value in a function, its arguments among them.

    What stands around it is as on the line on which the script comes to call it.
    """
    first = _first_call(function, tree)
    line = _line_of_script(first, tree)
    around = {name: value.at(line) if isinstance(value, Changed) else value for name, value in outer.items()}
    there: Mapping[str, Plain] = around
    if first is not None and isinstance(first[1], FUNCTIONS) and depth < _DEEPEST:
        there = inside(first[1], outer, tree, depth + 1)
    elif first is not None and not isinstance(first[1], ast.Module):
        there = local(first[1], around)
    return local(function, around, dict(_own_arguments(function, first, around, there)))


def local(
    part: ast.AST, outer: Mapping[str, Plain], arguments: Mapping[str, Plain] = MappingProxyType({})
) -> dict[str, Plain]:
    """Return the names that have a plain value in a class, or a function of arguments: its own hide those around it."""
    stored = {node.id for node in within(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(part, FUNCTIONS):
        stored |= {node.arg for node in within(part.args) if isinstance(node, ast.arg)}
    known = {**{name: value for name, value in outer.items() if name not in stored}, **arguments}
    return known | dict(assigned(within(part), known))


_Called = tuple[ast.Call, ast.AST] | None  # The call of a function, and what that stands in


def _own_arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    first: _Called,
    constants: Mapping[str, Plain],
    there: Mapping[str, Plain],
) -> Iterator[tuple[str, Plain]]:
    """Yield the arguments of a function: as the script first calls it, as it is started, or by default.

    ``def train(rank=16)`` has 16; behind ``train(rank=8)`` it has 8, and what only a run tells is left out.

    Args:
        there: the names that have a plain value where it is called.
    """
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    positional = positional[1:] if positional and positional[0].arg in _OWNERS else positional
    pairs = [*zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True)]
    values = dict(_decorated(function))
    values |= {one.arg: value for one, value in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]}
    started = {one.arg: f"{STARTED}{one.arg}" for one in (*positional, *given.kwonlyargs)}
    passed: dict[str, ast.expr] = {}
    if first is not None:
        call, _ = first
        passed = {one.arg: value for one, value in zip(positional, call.args, strict=False)}
        passed |= {word.arg: word.value for word in call.keywords if word.arg}
    if given.kwarg is not None and first is not None:  # def build(**kwargs): return TrainingArguments(**kwargs)
        further = [word for word in first[0].keywords if word.arg not in started]
        yield given.kwarg.arg, mapping(arguments_of(ast.Call(first[0].func, [], further)), there)
    yield from ((name, constants[key]) for name, key in started.items() if key in constants and name not in passed)
    for name, value in {**values, **passed}.items():
        with suppress(ValueError):
            if value is not None and (started.get(name) not in constants or name in passed):
                yield name, literal(value, there if name in passed else constants)


def _decorated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the arguments of a function that are options by ``@click.option("--rank")``, with their defaults."""
    for call in (one for one in function.decorator_list if isinstance(one, ast.Call) and called(one) in _OF_CLICK):
        names = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        name = next((one for one in names if one.isidentifier()), max(names, key=len, default=""))
        words = {word.arg: word.value for word in call.keywords}
        yield option_name(name), words.get("default", ast.Constant(value=False) if "is_flag" in words else None)


def _first_call(function: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.AST) -> _Called:
    """Return the call of a function that stands first in a script, and what it stands in; None where there is none.

    A class is called for its ``__init__``, and a method behind ``self`` or what the class made. So are those that Ray
    runs elsewhere: ``Server.options(num_replicas=2).bind(model)``, ``train.remote(rank=8)``.
    """
    name, of_class = function.name, _classes(tree).get(function, "")
    sought = of_class if name == "__init__" else name
    made = {*_OWNERS, of_class, *_objects(tree).get(of_class, ())} if of_class else set()
    calls = (
        (node, around)
        for node, around in _calls(tree).get(sought, ())
        if _is_call_of(node, sought)
        or (sought == name and isinstance(node.func, ast.Attribute) and node.func.attr == name and _base(node) in made)
    )
    return min(calls, key=lambda pair: (pair[0].lineno, pair[0].col_offset), default=None)


@lru_cache(maxsize=4)
def _classes(tree: ast.AST) -> Mapping[ast.AST, str]:
    """Return the names of the classes of a script by their methods."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {method: node.name for node in classes for method in node.body if isinstance(method, FUNCTIONS)}


@lru_cache(maxsize=4)
def _objects(tree: ast.AST) -> Mapping[str, Sequence[str]]:
    """Return the variables of a script that hold what a call makes, by what that calls."""
    objects: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in _names_of(node.value):
                objects.setdefault(name, []).extend(targets)
    return objects


@lru_cache(maxsize=4)
def _calls(tree: ast.AST) -> Mapping[str, Sequence[tuple[ast.Call, ast.AST]]]:
    """Return the calls of a script, each with what it stands in, by the names of what it may call."""
    calls: dict[str, list[tuple[ast.Call, ast.AST]]] = {}
    for around in ast.walk(tree):
        if isinstance(around, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            for node in (part for part in within(around) if isinstance(part, ast.Call)):
                for name in _names_of(node):
                    calls.setdefault(name, []).append((node, around))
    return calls


def _names_of(call: ast.Call) -> Iterator[str]:
    """Yield the names in what is called, however it is called."""
    part: ast.AST = call.func
    while isinstance(part, ast.Attribute | ast.Call):
        if isinstance(part, ast.Attribute):
            yield part.attr
        part = part.value if isinstance(part, ast.Attribute) else part.func
    if isinstance(part, ast.Name):
        yield part.id


def _is_call_of(node: ast.AST, name: str) -> bool:
    """Whether a part of a script calls a function or a class of its own, or has it run elsewhere."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr in _ELSEWHERE:
        function = function.value
        if isinstance(function, ast.Call) and isinstance(function.func, ast.Attribute):  # Server.options(...)
            function = function.func.value
    return isinstance(function, ast.Name) and function.id == name


def makers(tree: ast.AST) -> Mapping[str, ast.Call]:
    """Return the calls that made what variables of a script hold, by their names."""
    assigned_to = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call))
    return {
        target.id: cast("ast.Call", node.value)
        for node in assigned_to
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def maker_of(call: ast.Call, made: Mapping[str, ast.Call]) -> ast.Call | None:
    """Return the call that made the object of which a method is called; None where the script does not say it."""
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    maker = made.get(base.id) if isinstance(base, ast.Name) else base
    return maker if isinstance(maker, ast.Call) else None


def _base(call: ast.Call) -> str:
    """Return the name before the dot of what is called, or of what is called there."""
    value = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    value = value.func if isinstance(value, ast.Call) else value
    return value.id if isinstance(value, ast.Name) else ""


def _line_of_script(first: _Called, tree: ast.AST) -> float:
    """Return the line of a script on which it comes to a call, through the functions around that; else its end."""
    for _ in range(_DEEPEST):
        if first is None:
            break
        call, around = first
        if isinstance(around, ast.Module):
            return call.lineno
        first = _first_call(around, tree) if isinstance(around, FUNCTIONS) else None
    return math.inf


def _named_in(node: ast.AST) -> Iterator[str]:
    """Yield the names in an expression: of variables, behind dots, and in brackets."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name | ast.Attribute):
            yield child.id if isinstance(child, ast.Name) else child.attr
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
