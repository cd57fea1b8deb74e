"""Values of expressions of Python scripts, as far as the script says them; nothing is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.shell_words import calculated

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

OPTION = "--"  # Before names that only stand behind a dot, options and fields: a variable may be called the same
SHELL = "$"  # Before the name of a variable of the shell
STARTED = "="  # Before the name of an option that the script is started with
_LIBRARIES = frozenset({"torch", "jnp", "jax", "np", "transformers"})  # What number types and the like are named of


class OfARun(str):
    """A value as it is written that only running the script tells."""

    __slots__ = ()


class FurtherOptions(OfARun):
    """What is written in place of options of which only a run tells any: ``"$@"``, ``**kwargs``."""

    __slots__ = ()


_TYPES: Mapping[str, Callable[[str | int | float], str | int | float]] = {
    "int": int,
    "float": float,
    "str": str,
    "Path": str,
}

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.eq,
    ast.IsNot: operator.ne,
    ast.In: lambda one, others: one in others,
    ast.NotIn: lambda one, others: one not in others,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_TRUE_TODAY = frozenset({"is_bfloat16_supported", "is_bf16_supported", "is_available", "hasattr"})
"""What scripts ask of the device, and of libraries and models, that those since 2020 answer with yes as a rule."""

_TODAY: Mapping[str, str] = {"torch.__version__": "2.9", "sys.platform": "linux"}
"""What scripts ask of the machine, as it is where models are trained."""

_ENVIRONMENT = frozenset({"getenv", "environ.get"})  # What returns a variable of the shell, or a default


def literal(node: ast.expr, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of an expression; ``torch.bfloat16`` is its last name, ``arguments.rank`` what a script sets so.

    Raises:
        ValueError: only running the script tells it.
    """
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(node, constants)
    if isinstance(node, ast.List | ast.Tuple):
        return [literal(element, constants) for element in node.elts]
    if isinstance(node, ast.BoolOp | ast.IfExp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return _decided(node, constants)
    if (reader := _READERS.get(type(node))) is not None:
        return reader(node, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        with suppress(ValueError):
            return _joined((node.left, node.right), constants)
    value: object = calculated(node) if isinstance(node, ast.BinOp) else ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | list | dict | None):
        raise ValueError(type(value).__name__)
    return value


def _joined(parts: Sequence[ast.expr], constants: Mapping[str, Plain]) -> str:
    """Return a path as far as the script says it: ``ROOT / "models" / "gemma-2-2b-it"`` ends with its model.

    Raises:
        ValueError: it does not say what it ends with, or that is no text.
    """
    last, folder = literal(parts[-1], constants), ""
    if not isinstance(last, str):
        raise ValueError(ast.unparse(parts[-1]))
    for part in parts[:-1]:
        with suppress(ValueError):
            folder += f"{str(literal(part, constants)).rstrip('/')}/"
    return f"{folder or '/'}{last}"


def _named(node: ast.Name | ast.Attribute, constants: Mapping[str, Plain]) -> Plain:
    """Return what a name stands for.

    Raises:
        ValueError: the script does not say it.
    """
    name = node.id if isinstance(node, ast.Name) else node.attr
    keys = (ast.unparse(node), *((f"{OPTION}{name}",) if isinstance(node, ast.Attribute) else ()), name)
    if (key := next((key for key in keys if key in constants), None)) is not None:
        if isinstance(value := constants[key], OfARun):
            raise ValueError(value)
        return value
    if keys[0] in _TODAY:
        return _TODAY[keys[0]]
    first: ast.expr = node
    while isinstance(first, ast.Attribute):
        first = first.value
    if node is first or not isinstance(first, ast.Name) or not (first.id in _LIBRARIES or first.id[0].isupper()):
        raise ValueError(name)
    return name


def _mapping(node: ast.Dict, constants: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return a mapping by names; what only running the script tells of it stays as it is written."""
    read: dict[str, Plain] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:  # {**base, "x": 1}
            try:
                further = literal(value, constants)
            except ValueError:
                further = {f"**{ast.unparse(value)}": FurtherOptions(ast.unparse(value))}
            read |= further if isinstance(further, dict) else {}
        else:
            try:
                read[str(literal(key, constants))] = literal(value, constants)
            except ValueError:
                read[ast.unparse(key).strip("'")] = OfARun(ast.unparse(value))
    return read


def _part(node: ast.Subscript, constants: Mapping[str, Plain]) -> Plain:
    """Return what stands in a mapping under a name, or in a list: ``SETTINGS["rank"]``, ``os.environ["RANK"]``.

    Raises:
        ValueError: only running the script tells it.
    """
    key, name = literal(node.slice, constants), ast.unparse(node.value)
    with suppress(LookupError):
        if name.removeprefix("os.") == "environ":
            return constants[f"{SHELL}{key}"]
        whole = literal(node.value, constants)
        if isinstance(whole, dict) and isinstance(key, str) and not isinstance(whole[key], OfARun):
            return whole[key]
        if isinstance(whole, list | str) and isinstance(key, int):
            return whole[key]
    raise ValueError(name)


def _decided(node: ast.BoolOp | ast.IfExp | ast.UnaryOp, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of ``a or b``, the first that is not empty; of ``a and b`` and ``not a`` whether they hold.

    Raises:
        ValueError: only running the script tells it.
    """
    if isinstance(node, ast.IfExp):
        return literal(node.body if literal(node.test, constants) else node.orelse, constants)
    if isinstance(node, ast.UnaryOp):
        return not literal(node.operand, constants)
    if isinstance(node.op, ast.And):
        return all(bool(literal(value, constants)) for value in node.values)
    for value in node.values:
        with suppress(ValueError):
            if (first := literal(value, constants)) or value is node.values[-1]:
                return first
    raise ValueError(ast.unparse(node))


def _compared(node: ast.Compare, constants: Mapping[str, Plain]) -> bool:
    """Return whether a comparison of two values holds; a number that an option gives is one: ``bits == 4``.

    Raises:
        ValueError: only running the script tells it.
    """
    compare = _COMPARED.get(type(node.ops[0])) if len(node.ops) == 1 else None
    first, second = literal(node.left, constants), literal(node.comparators[0], constants)
    if compare is None:
        raise ValueError(ast.unparse(node))
    others = second if isinstance(second, list) else [second]
    if isinstance(first, str) and any(isinstance(other, int | float) for other in others):
        first = float(first)
    try:
        return bool(compare(first, second))
    except TypeError:
        raise ValueError(ast.unparse(node)) from None


def _made(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return a variable's default, that of a class's field, or either as a number: ``int(os.getenv("RANK", "8"))``.

    Raises:
        ValueError: another call.
    """
    called = ast.unparse(call.func)
    if called == "dict":
        given: list[tuple[ast.expr | None, ast.expr]] = [(None, part) for part in call.args]
        given += [(ast.Constant(word.arg) if word.arg else None, word.value) for word in call.keywords]
        return _mapping(ast.Dict([key for key, _ in given], [value for _, value in given]), constants)
    reader = next((reader for name, reader in _CALLS.items() if f".{called}".endswith(f".{name}")), None)
    if reader is not None:
        return reader(call, constants)
    if called in _TYPES and len(call.args) == 1:
        value = literal(call.args[0], constants)
        if isinstance(value, str | int | float):
            return _TYPES[called](value)
    if called.removeprefix("os.") in _ENVIRONMENT and call.args:
        variable = f"{SHELL}{literal(call.args[0], constants)}"
        if variable in constants:
            return constants[variable]
        return literal(call.args[1], constants) if call.args[1:] else None
    default = next((word.value for word in call.keywords if word.arg == "default"), None)
    if called.rpartition(".")[2].casefold() == "field" and default is not None:
        return literal(default, constants)
    raise ValueError(called)


def _cut(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return the parts of a text: ``arguments.modules.split(",")``.

    Raises:
        ValueError: only running the script tells it.
    """
    whole = literal(call.func.value, constants) if isinstance(call.func, ast.Attribute) else None
    signs = [literal(sign, constants) for sign in call.args]
    if not isinstance(whole, str) or len(signs) > 1 or not all(isinstance(sign, str) and sign for sign in signs):
        raise ValueError(ast.unparse(call))
    return [*whole.split(str(signs[0]) if signs else None)]


def _stripped(node: ast.ListComp, constants: Mapping[str, Plain]) -> Plain:
    """Return the texts of a list without blanks: ``[name.strip() for name in arguments.modules.split(",")]``.

    Raises:
        ValueError: another list that only running the script tells.
    """
    parts = node.generators[0]
    texts, name = literal(parts.iter, constants), ast.unparse(parts.target)
    is_plain = ast.unparse(node.elt) in {name, f"{name}.strip()"} and len(node.generators) == 1
    if not is_plain or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(ast.unparse(node))
    return [text.strip() for text in map(str, texts) if text.strip()]


def _attribute(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return what ``getattr(config, "RANK", 16)`` gives: of what a script knows to have none, the default.

    Raises:
        ValueError: only running the script tells it.
    """
    before = f"{ast.unparse(call.args[0])}."
    name = f"{before}{literal(call.args[1], constants)}"
    if name in constants:
        return constants[name]
    if len(call.args) > 2 and any(known.startswith(before) for known in constants):
        return literal(call.args[2], constants)
    raise ValueError(name)


_CALLS: Mapping[str, Callable[[ast.Call, Mapping[str, Plain]], Plain]] = {
    **dict.fromkeys(_TRUE_TODAY, lambda *_: True),
    "getattr": _attribute,
    "split": _cut,
    "path.join": lambda call, constants: _joined(call.args, constants),
}
"""What reads a call, by its name."""

_READERS: Mapping[type[ast.expr], Callable[[Any, Mapping[str, Plain]], Plain]] = {
    ast.Call: _made,
    ast.Compare: _compared,
    ast.Dict: _mapping,
    ast.ListComp: _stripped,
    ast.Subscript: _part,
}
"""What reads an expression of a kind."""


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
    for node in nodes:
        if isinstance(node, ast.If | ast.Try | ast.For):
            decided = holds(node, known)
            sometimes |= {*ast.walk(node)} if decided is None else set()
            left_out = () if decided is None or not isinstance(node, ast.If) else node.orelse if decided else node.body
            never |= {part for statement in left_out for part in ast.walk(statement)}
        if node not in never and (entries := _entries_set(node, known)) is not None:
            name, further = entries
            whole, is_open = known[name], node in sometimes
            made = {key: _value(value, known, is_open) for key, value in further.items()}
            known[name] = {**(whole if isinstance(whole, dict) else {}), **made}
            yield name, known[name]
            continue
        is_single = isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and len(node.targets) == 1)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not is_single or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name):
            continue
        try:
            known[target.id] = literal(node.value, known)
        except ValueError:
            is_made_of_itself = any(
                isinstance(part, ast.Name) and part.id == target.id for part in ast.walk(node.value)
            )
            if target.id not in known or is_made_of_itself:  # model = load(model): what it was given counts
                continue
            known[target.id] = OfARun(ast.unparse(node.value))
        yield target.id, known[target.id]


def holds(node: ast.AST, constants: Mapping[str, Plain]) -> bool | None:
    """Return whether the condition of an ``if`` holds; None where only running the script tells."""
    if isinstance(node, ast.If):
        with suppress(ValueError):
            value = literal(node.test, constants)
            return None if value is None and not isinstance(node.test, ast.Constant) else bool(value)
    return None


def _entries_set(node: ast.AST, known: Mapping[str, Plain]) -> tuple[str, dict[str, ast.expr]] | None:
    """Return entries of a known mapping that a part sets: ``settings["rank"] = 8``, ``settings.update(rank=8)``."""
    base: ast.expr | None = None
    made: dict[str, ast.expr] = {}
    if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript):
        base = target.value
        made = {str(target.slice.value): node.value} if isinstance(target.slice, ast.Constant) else {}
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "update":
        base = node.func.value
        made = {word.arg: word.value for word in node.keywords if word.arg}
        for part in node.args[:1]:
            pairs = zip(part.keys, part.values, strict=True) if isinstance(part, ast.Dict) else ()
            made |= {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    name = base.id if isinstance(base, ast.Name) else ""
    return (name, made) if made and isinstance(known.get(name), dict) else None


def _value(node: ast.expr, known: Mapping[str, Plain], is_open: bool) -> Plain:
    """Return a plain value; as it is written where only a run tells it, or whether it is set."""
    with suppress(ValueError):
        if not is_open:
            return literal(node, known)
    return OfARun(ast.unparse(node))
