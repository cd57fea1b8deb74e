"""What statements of a Python script give names: assignments, and imports of modules that lie beside it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.expressions import (
    OPTION,
    Changed,
    OfARun,
    arguments_of,
    last_name,
    literal,
    mapping,
    open_entries,
)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_SELF, _MAKES_FIELDS = "self", "__post_init__"  # What a method calls its object, and what makes fields of others

_CHANGES = frozenset({"update", "setdefault", "pop", "popitem", "clear"})  # What changes a mapping in place


def imported(
    tree: ast.Module, module: Callable[[str], str | None], shell: Mapping[str, Plain]
) -> Iterator[tuple[str, Plain]]:
    """Yield names that a script imports from modules beside it, as it writes them: ``config.MODEL``, ``RANK``.

    Args:
        module: returns the text of a module by its dotted name; None for one that does not lie there.
        shell: variables of the shell that starts it.
    """
    classes = dict(_classes(tree, shell))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _behind(alias.asname or alias.name, _names(module(alias.name), shell))
        elif isinstance(node, ast.ImportFrom):
            text, base = module(node.module or ""), f"{node.module}." if node.module else ""
            names = _names(text, shell)
            classes |= dict(_classes(parsed(text), shell))
            for alias in node.names:
                name = alias.asname or alias.name
                yield from ([*names.items()] if alias.name == "*" else [])
                yield from ([(name, names[alias.name])] if alias.name in names else [])
                fields = classes.get(alias.name, {})
                yield from (*_behind(name, fields), *((f"{OPTION}{field}", value) for field, value in fields.items()))
                yield from ((key.replace(alias.name, name, 1), value) for key, value in _made(parsed(text), classes))
                yield from _behind(name, _names(module(f"{base}{alias.name}"), shell))
    yield from _made(tree, classes)


def modules_used(text: str) -> Iterator[str]:
    """Yield the modules from which a script takes names."""
    tree = parsed(text)
    yield from dict.fromkeys(node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)


def _behind(name: str, values: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    return ((f"{name}.{field}", value) for field, value in values.items())


def parsed(text: str | None) -> ast.Module:
    """Return a module; an empty one where it cannot be read."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(text or "")
    return ast.Module([], [])


def _names(text: str | None, shell: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Return the names of a module that it gives a plain value itself."""
    names = dict(assigned(parsed(text).body, shell))
    return {name: dict(value) if isinstance(value, dict) else value for name, value in names.items()}


def _classes(tree: ast.Module, shell: Mapping[str, Plain]) -> Iterator[tuple[str, Mapping[str, Plain]]]:
    """Yield the classes of a module with their fields that have a plain value."""
    outside = {**shell, **dict(assigned(tree.body, shell))}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, fields_of(node, outside)


def fields_of(node: ast.ClassDef, outside: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the fields of a class that have a plain value; what a dataclass makes of them itself goes before that."""
    fields = dict(assigned(within(node), outside))
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == _MAKES_FIELDS:
            own = {f"{_SELF}.{field}": value for field, value in fields.items()}
            made = of_itself(method, {**outside, **own})
            fields |= {name.partition(".")[2]: value for name, value in made}
    return fields


def of_itself(part: ast.AST, known: Mapping[str, Plain], owner: str = _SELF) -> Iterator[tuple[str, Plain]]:
    """Yield what a method sets of its object, as ``self.rank``, or a part of a script of another one."""
    made = dict(assigned(within(_Named(owner).visit(copy.deepcopy(part))), known))
    return ((name, value) for name, value in made.items() if name.startswith(f"{owner}."))


class _Named(ast.NodeTransformer):
    """Gives what is set of an object a name: ``self.rank = 8`` sets one that is called ``self.rank``."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == self._owner:
            return ast.copy_location(ast.Name(ast.unparse(node), node.ctx), node)
        return node


def _made(tree: ast.Module, classes: Mapping[str, Mapping[str, Plain]]) -> Iterator[tuple[str, Plain]]:
    """Yield the fields of what is made of known classes without arguments: ``settings = Settings()``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            fields = classes.get(ast.unparse(node.value.func), {}) if not node.value.args else {}
            given = {word.arg for word in node.value.keywords}
            known = {field: value for field, value in fields.items() if field not in given}
            yield from _behind(node.targets[0].id, known)


def within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a part of a script, in its order; what functions and classes in it hold is their own."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from within(child)


def assigned(nodes: Iterable[ast.AST], constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield names that some statements give a plain value, or one that only a run tells where they had one before."""
    known = dict(constants)
    sometimes, never = set[ast.AST](), set[ast.AST]()  # what only a run tells whether it is done, and what never is
    either: dict[ast.AST, int] = {}  # what is done where a condition holds, or where it does not, by its branch
    branches: dict[str, int] = {}  # the branches in which names were given their values
    repeated = set[ast.AST]()  # what is done again and again
    for node in nodes:
        if isinstance(node, ast.For | ast.While):
            repeated |= {*ast.walk(node)}
        if isinstance(node, ast.If | ast.Try | ast.For):
            decided = holds(node, known)
            sometimes |= {*ast.walk(node)} if decided is None else set()
            for branch in (node.body, node.orelse) if decided is None and isinstance(node, ast.If) else ():
                either |= {part: id(branch) for statement in branch for part in ast.walk(statement)}
            left_out = () if decided is None or not isinstance(node, ast.If) else node.orelse if decided else node.body
            never |= {part for statement in left_out for part in ast.walk(statement)}
        if node in never:
            continue
        name = _changed(node)
        if isinstance(node, ast.stmt | ast.expr) and isinstance(whole := known.get(name), dict):
            made = _entries(node, name, known)
            if node in sometimes:
                made = {key: value if isinstance(value, OfARun) else OfARun(value) for key, value in made.items()}
            known[name] = Changed({**whole, **made}, whole, node.lineno)
            yield name, known[name]
            continue
        if isinstance(node, ast.With):
            opened = ((item.optional_vars, item.context_expr) for item in node.items)
            known |= {
                target.id: path
                for target, call in opened
                if isinstance(target, ast.Name)
                for path in _opened(call, known)
            }
        before = dict(known) if isinstance(node, ast.Assign) else known  # batch, steps = steps, batch
        for name, expression in _given_to(node):
            is_made_of_itself = any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(expression))
            if is_made_of_itself and node in repeated:  # what it begins with counts
                continue
            try:
                value = literal(expression, before)
                chosen = node in either and name in known and branches.get(name) != either[node]
                branches[name] = either.get(node, 0)
                known[name] = _either(known[name], value, expression) if chosen else value
            except ValueError:
                if is_made_of_itself:  # model = load(model): what it was given counts
                    continue
                known[name] = _unread(expression)
            yield name, known[name]


def _either(one: Plain, other: Plain, expression: ast.expr) -> Plain:
    """Return the value of a name to which two branches give one: of a mapping and nothing the mapping."""
    if isinstance(one or other, dict) and None in (one, other):
        return one or other
    return one if one == other else _unread(expression)


def _unread(expression: ast.expr) -> OfARun:
    """Return a value that only a run tells, as it is written."""
    with suppress(RecursionError):
        return OfARun(ast.unparse(expression))
    return OfARun("...")


def _opened(expression: ast.expr, known: Mapping[str, Plain]) -> Iterator[Plain]:
    """Yield the path of a file that a statement opens, which its name stands for."""
    if isinstance(expression, ast.Call) and last_name(expression) == "open":
        paths = expression.args[:1] or ([expression.func.value] if isinstance(expression.func, ast.Attribute) else [])
        for path in paths:
            with suppress(ValueError):
                yield literal(path, known)


def _given_to(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement gives a value, with that: of ``count *= 2`` the product."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        yield node.target.id, ast.copy_location(ast.BinOp(before, node.op, node.value), node)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if len(targets) != 1 or value is None:
        return
    if isinstance(target := targets[0], ast.Name):
        yield target.id, value
    parts = target.elts if isinstance(target, ast.Tuple) else []
    starred = next((index for index, part in enumerate(parts) if isinstance(part, ast.Starred)), len(parts))
    for index, part in enumerate(parts):
        if isinstance(part, ast.Name):
            place = index if index < starred else index - len(parts)  # *rest, batch, steps
            yield part.id, ast.copy_location(ast.Subscript(value, ast.Constant(place), ast.Load()), value)


def holds(node: ast.AST, constants: Mapping[str, Plain]) -> bool | None:
    """Return whether the condition of an ``if`` holds; None where only running the script tells."""
    if isinstance(node, ast.If | ast.IfExp):
        with suppress(ValueError):
            value = literal(node.test, constants)
            return None if value is None and not isinstance(node.test, ast.Constant) else bool(value)
    return None


def _changed(node: ast.AST) -> str:
    """Return the name of what a part of a script changes in place; empty where it changes nothing so."""
    base: ast.expr | None = None
    if isinstance(node, ast.Assign | ast.Delete) and isinstance(target := node.targets[0], ast.Subscript):
        base = target.value
    elif isinstance(node, ast.AugAssign):
        base = node.target
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        base = node.func.value
    return base.id if isinstance(base, ast.Name) else ""


def _entries(node: ast.AST, name: str, known: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the entries that a change puts into a mapping: ``settings["rank"] = 8``, ``settings.update(rank=8)``."""
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        if isinstance(target.slice, ast.Constant):
            return mapping(ast.Dict([target.slice], [node.value]), known)
    elif isinstance(node, ast.AugAssign):
        return mapping(ast.Dict([None], [node.value]), known)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.update":
        return mapping(arguments_of(node), known)
    return open_entries(name)
