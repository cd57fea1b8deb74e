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
    why = "only running the script tells {}: what it gives is not read"


class Changed(dict[str, Plain]):
    """A mapping of a script that is changed on a line of it, with what it is up to there."""

    __slots__ = ("before", "line")

    def __init__(self, now: Mapping[str, Plain], before: dict[str, Plain], line: int) -> None:
        super().__init__(now)
        self.before, self.line = before, line

    def at(self, line: float) -> dict[str, Plain]:
        """Return what it is on a line of the script."""
        if line > self.line:
            return dict(self)
        return self.before.at(line) if isinstance(self.before, Changed) else self.before


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

_TODAY: Mapping[str, str] = {"torch.__version__": "2.9", "sys.platform": "linux", "__name__": "__main__"}
"""What scripts ask of the machine, as it is where models are trained."""

_CHANGES = frozenset({"update", "setdefault", "pop", "popitem", "clear"})  # What changes a mapping in place

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
        return value.at(node.lineno) if isinstance(value, Changed) else value
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
            further: Plain = None
            with suppress(ValueError):
                further = literal(value, constants)
            read |= further if isinstance(further, dict) else _open(ast.unparse(value))
        else:
            try:
                read[str(literal(key, constants))] = literal(value, constants)
            except ValueError:
                read[ast.unparse(key).strip("'")] = OfARun(ast.unparse(value))
    return read


def _open(name: str) -> dict[str, Plain]:
    """Return what stands in a mapping for entries that only running the script tells."""
    return {f"**{name}": FurtherOptions(name)}


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
        return _mapping(_given(call), constants)
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


def _given(call: ast.Call) -> ast.Dict:
    """Return the arguments of a call as a mapping: ``dict(base, rank=8)`` is ``{**base, "rank": 8}``."""
    keys: list[ast.expr | None] = [None for _ in call.args]
    keys += [ast.Constant(word.arg) if word.arg else None for word in call.keywords]
    return ast.Dict(keys, [*call.args, *(word.value for word in call.keywords)])


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
    "get_device_capability": lambda *_: [9, 0],  # of Hopper
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
    either = set[ast.AST]()  # what is done where a condition holds, or where it does not
    for node in nodes:
        if isinstance(node, ast.If | ast.Try | ast.For):
            decided = holds(node, known)
            sometimes |= {*ast.walk(node)} if decided is None else set()
            either |= {*ast.walk(node)} if decided is None and isinstance(node, ast.If) else set()
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
        is_single = isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and len(node.targets) == 1)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not is_single or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name):
            continue
        try:
            value = literal(node.value, known)
            is_other = node in either and target.id in known and known[target.id] != value
            known[target.id] = OfARun(ast.unparse(node.value)) if is_other else value
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
            return _mapping(ast.Dict([target.slice], [node.value]), known)
    elif isinstance(node, ast.AugAssign):
        return _mapping(ast.Dict([None], [node.value]), known)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.update":
        return _mapping(_given(node), known)
    return _open(name)
