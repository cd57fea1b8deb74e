"""What a Python script surely does: the steps that it takes, with the names that have a plain value there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from types import MappingProxyType
from typing import cast

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.expressions import FUNCTIONS, STARTED, assigned, holds, literal, within

_COMPILES = "torch.compile"

_TURNS_ON = frozenset({"gradient_checkpointing_enable", _COMPILES})  # Calls that change a model itself

_SETTINGS = re.compile(r"(?:Config|Arguments)$")  # What is called to make settings, which do nothing themselves

_A_MODEL = re.compile(r"model|net\b", re.IGNORECASE)  # What such a call is given that compiles one


def reached(
    node: ast.AST, constants: Mapping[str, Plain], outer: Mapping[str, Plain], tree: ast.AST
) -> Iterator[tuple[ast.Call | ast.Assign, Mapping[str, Plain]]]:
    """Yield the calls and assignments of a script with the names of plain values there: of its function, and outer.

    What a script never does is left out, as ``if False: model = from_pretrained("saved")`` of a notebook. What it sets
    itself, or where nothing is given, decides too: ``if arguments.load_in_8bit: ...``. A call that turns something on
    where only running the script tells whether has the condition as its one argument, called as it is itself.

    Args:
        outer: the names that functions in it see: none of a class around them.
    """
    decided = holds(node, constants)
    for field, children in ast.iter_fields(node):
        is_never = isinstance(node, ast.If) and decided is {"body": False, "orelse": True}.get(field, "")
        if is_never or field == "decorator_list":
            continue
        unless: ast.expr | None = None  # a condition with which the part is left before its end
        for child in children if isinstance(children, list) else [children]:
            if isinstance(child, FUNCTIONS):
                inner = _inside(child, outer, tree)
                yield from reached(child, inner, inner, tree)
            elif isinstance(child, ast.ClassDef):
                yield from reached(child, local(child, constants), outer, tree)
            elif isinstance(child, ast.AST):
                condition = unless
                if isinstance(node, ast.If) and decided is None and field != "test":
                    condition = node.test
                steps = [*reached(child, constants, outer, tree)]
                steps += [(child, constants)] if isinstance(child, ast.Call | ast.Assign) else []
                for step, known in steps:
                    yield (_where(step, condition) if condition is not None else step), known
                if isinstance(child, ast.If) and isinstance(child.body[-1], ast.Return | ast.Raise):
                    leaves = holds(child, constants)
                    if leaves:
                        break
                    unless = unless if leaves is False else _not(child.test)


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


def changed_later(
    call: ast.Call, steps: Sequence[tuple[ast.Call | ast.Assign, Mapping[str, Plain]]], known: Mapping[str, Plain]
) -> Iterator[ast.keyword]:
    """Yield what a script sets behind a dot of what a call made, in one function: ``arguments.max_steps = 100``."""
    made = (step for step, _ in steps if isinstance(step, ast.Assign) and step.value is call)
    targets = (target for step in made if _SETTINGS.search(called(call)) for target in step.targets)
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    for step, there in steps:
        target = step.targets[0] if isinstance(step, ast.Assign) and there is known else None
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in names:
            yield ast.keyword(target.attr, cast("ast.Assign", step).value)


def unused(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the calls that make a configuration under a name which a script that trains never reads."""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    trains = any(isinstance(node, ast.Call) and called(node) == "train" for node in ast.walk(tree))
    for node in ast.walk(tree) if trains else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _SETTINGS.search(called(node.value)):
            targets = [target.id for target in node.targets if isinstance(target, ast.Name)]
            yield from [node.value] if targets and not read & {*targets} else []


def names_behind(calls: Set[ast.AST], tree: ast.AST) -> Set[str]:
    """Return the names on which calls of a script depend, through what it assigns and hands to its functions."""
    nodes = list(ast.walk(tree))
    parameters = {node.name: [one.arg for one in node.args.args] for node in nodes if isinstance(node, FUNCTIONS)}
    made: list[tuple[str, ast.AST]] = []  # names, each with what it is made of
    for node in nodes:
        if isinstance(node, ast.Assign):
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


def _inside(
    function: ast.FunctionDef | ast.AsyncFunctionDef, outer: Mapping[str, Plain], tree: ast.AST
) -> Mapping[str, Plain]:
    """Return the names that have a plain value in a function, its arguments among them."""
    return local(function, outer, dict(_own_arguments(function, outer, tree)))


def local(
    part: ast.AST, outer: Mapping[str, Plain], arguments: Mapping[str, Plain] = MappingProxyType({})
) -> dict[str, Plain]:
    """Return the names that have a plain value in a class, or a function of arguments: its own hide those around it."""
    stored = {node.id for node in within(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(part, FUNCTIONS):
        stored |= {node.arg for node in within(part.args) if isinstance(node, ast.arg)}
    known = {**{name: value for name, value in outer.items() if name not in stored}, **arguments}
    return known | dict(assigned(within(part), known))


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
        there = constants if isinstance(around, ast.Module) else local(around, constants)
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


def _named_in(node: ast.AST) -> Iterator[str]:
    """Yield the names in an expression: of variables, behind dots, and in brackets."""
    for child in ast.walk(node):
        if isinstance(child, ast.Name | ast.Attribute):
            yield child.id if isinstance(child, ast.Name) else child.attr
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value
