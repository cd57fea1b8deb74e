"""Values of expressions of Python scripts, as far as the script says them; ValueError where only a run tells them."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, cast

from capacity_tui.engine.catalog import Plain, parse_shipped
from capacity_tui.engine.plan.imports.scripts.shell_words import calculated


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


OPTION = "--"  # Before names that only stand behind a dot, options and fields: a variable may be called the same
SHELL = "$"  # Before the name of a variable of the shell
FILE = "<"  # Before the path of a file of options that a script may read
RETURNED = "()"  # Behind the name of a function that returns a mapping
STARTED = "="  # Before the name of an option that the script is started with
_DEFAULTS = frozenset({"field", "option", "argument"})  # What says what a field or an argument is by default
_READS_OPTIONS = re.compile(r"load|read|parse", re.IGNORECASE)  # In the name of what reads such a file
_OPENS = frozenset({"open", "read", "read_text", "expanduser", "resolve"})  # What stands around its path
_LIBRARIES = frozenset({"torch", "jnp", "jax", "np", "transformers"})  # What number types and the like are named of


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


@cache
def _answers() -> Mapping[str, Mapping[str, Plain]]:
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "script_answers.yaml")
    return rows


def _answer(kind: str, name: str) -> Plain:
    """Return what the machine answers to a call or a name, as ``profiles/script_answers.yaml`` has it."""
    if name not in (answers := _answers()[kind]):
        raise ValueError(name)
    return answers[name]


def literal(node: ast.expr, constants: Mapping[str, Plain]) -> Plain:
    """Return the value of an expression; ``torch.bfloat16`` is its last name, ``arguments.rank`` what is set so."""
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(node, constants)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [literal(element, constants) for element in node.elts]
    if isinstance(node, ast.BoolOp | ast.IfExp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return _decided(node, constants)
    if (reader := _READERS.get(type(node))) is not None:
        return reader(node, constants)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        with suppress(ValueError):
            return _joined((node.left, node.right), constants)
    value: object = _number(node, constants) if isinstance(node, ast.BinOp) else ast.literal_eval(node)
    if not isinstance(value, str | int | float | bool | list | dict | None):
        raise ValueError(type(value).__name__)
    return value


def _formatted(node: ast.JoinedStr, constants: Mapping[str, Plain]) -> str:
    """Return a text with the values that are written into it: ``f"{DEVICE}:{COUNT}"``."""
    parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
    if any(isinstance(part, ast.FormattedValue) and part.format_spec for part in node.values):
        raise ValueError(ast.unparse(node))
    return "".join(str(literal(part, constants)) for part in parts)


def _number(node: ast.BinOp, constants: Mapping[str, Plain]) -> Plain:
    """Return what is calculated of numbers, and of names that stand for some: ``max_length * 2``; lists are joined."""
    with suppress(ValueError):
        return calculated(node)
    values = [literal(part, constants) for part in (node.left, node.right)]
    first, second = values
    if isinstance(node.op, ast.Add) and isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    left, right = (ast.Constant(value if isinstance(value, int) else None) for value in values)
    return calculated(ast.BinOp(left, node.op, right))


def _joined(parts: Sequence[ast.expr], constants: Mapping[str, Plain]) -> str:
    """Return a path as far as the script says it: ``ROOT / "models" / "gemma-2-2b-it"`` ends with its model."""
    last, folder = literal(parts[-1], constants), ""
    if not isinstance(last, str):
        raise ValueError(ast.unparse(parts[-1]))
    for part in parts[:-1]:
        with suppress(ValueError):
            folder += f"{str(literal(part, constants)).rstrip('/')}/"
    return f"{folder or '/'}{last}"


def _named(node: ast.Name | ast.Attribute, constants: Mapping[str, Plain]) -> Plain:
    """Return what a name stands for."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    if isinstance(node, ast.Attribute):
        with suppress(ValueError):
            if isinstance(whole := literal(node.value, constants), dict) and name in whole:
                return whole[name]
    whole_name, *parts = ast.unparse(node), *ast.unparse(node).split(".")[1:]
    behind_dots = (f"{OPTION}{'.'.join(parts[at:])}" for at in range(len(parts)))  # of args.model.name model.name first
    keys = (whole_name, *behind_dots, name)
    if (key := next((key for key in keys if key in constants), None)) is not None:
        if isinstance(value := constants[key], OfARun):
            raise ValueError(value)
        return value.at(node.lineno) if isinstance(value, Changed) else value
    with suppress(ValueError):
        return _answer("names", keys[0])
    first: ast.expr = node
    while isinstance(first, ast.Attribute):
        first = first.value
    if node is first or not isinstance(first, ast.Name) or not (first.id in _LIBRARIES or first.id[0].isupper()):
        raise ValueError(name)
    return name


def mapping(node: ast.Dict, constants: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return a mapping by names; what only running the script tells of it stays as it is written."""
    read: dict[str, Plain] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:  # {**base, "x": 1}
            further: Plain = None
            with suppress(ValueError):
                further = literal(value, constants)
            read |= further if isinstance(further, dict) else open_entries(ast.unparse(value))
        else:
            try:
                read[str(literal(key, constants))] = literal(value, constants)
            except ValueError:
                read[ast.unparse(key).strip("'")] = OfARun(ast.unparse(value))
    return read


def open_entries(name: str) -> dict[str, Plain]:
    """Return what stands in a mapping for entries that only running the script tells."""
    return {f"**{name}": FurtherOptions(name)}


def _part(node: ast.Subscript, constants: Mapping[str, Plain]) -> Plain:
    """Return what stands in a mapping under a name, or in a list: ``SETTINGS["rank"]``, ``os.environ["RANK"]``.

    Of a mapping of mappings under a name that only a run tells, it is what all of them have.
    """
    name = ast.unparse(node.value)
    try:
        key = literal(node.slice, constants)
    except ValueError:
        whole = literal(node.value, constants)
        parts = [part for part in whole.values() if isinstance(part, dict)] if isinstance(whole, dict) else []
        if not isinstance(whole, dict) or not parts or len(parts) < len(whole):
            raise
        pairs = ((entry, [part.get(entry) for part in parts]) for entry in parts[0])
        return {entry: of[0] if all(one == of[0] for one in of) else OfARun(entry) for entry, of in pairs}
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
    """Return the value of ``a or b``, the first that is not empty; of ``a and b`` and ``not a`` whether they hold."""
    if isinstance(node, ast.IfExp):
        return literal(node.body if literal(node.test, constants) else node.orelse, constants)
    if isinstance(node, ast.UnaryOp):
        return not literal(node.operand, constants)
    if isinstance(node.op, ast.And):
        return all(bool(literal(value, constants)) for value in node.values)
    for value in node.values:
        with suppress(ValueError):
            # An empty mapping stands for what a run gives: settings.get("training") or {}
            if (first := literal(value, constants)) or (value is node.values[-1] and first != {}):
                return first
    raise ValueError(ast.unparse(node))


def _compared(node: ast.Compare, constants: Mapping[str, Plain]) -> bool:
    """Return whether a comparison of two values holds; a number that an option gives is one: ``bits == 4``."""
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
    """Return a variable's default, that of a class's field, or either as a number: ``int(os.getenv("RANK", "8"))``."""
    called = ast.unparse(call.func)
    returned = constants.get(f"{last_name(call)}{RETURNED}")
    if called == "dict" or returned is not None:
        return mapping(arguments_of(call), constants) if returned is None else returned
    if _READS_OPTIONS.search(called) and call.args and (options := _options(call.args[0], constants)) is not None:
        return options
    if (reader := next((one for name, one in _CALLS.items() if f".{called}".endswith(f".{name}")), None)) is not None:
        return reader(call, constants)
    if called in _TYPES and len(call.args) == 1:
        value = literal(call.args[0], constants)
        if isinstance(value, str | int | float):
            return _TYPES[called](value)
    words, last = {word.arg: word.value for word in call.keywords}, called.split(".")[-1]
    factory = words.get("default_factory")
    made = factory.body if isinstance(factory, ast.Lambda) else None
    default = words.get("default", call.args[0] if call.args else made)
    if last.casefold() not in _DEFAULTS or default is None:
        return _answer("calls", last)
    return literal(default, constants)


def _options(argument: ast.expr, constants: Mapping[str, Plain]) -> Plain:
    """Return the options in a file that a script reads: ``yaml.safe_load(open("train.yaml"))``; None for others."""
    while isinstance(argument, ast.Call) and last_name(argument) in _OPENS:
        given = argument.args[:1] or ([argument.func.value] if isinstance(argument.func, ast.Attribute) else [])
        if not given:
            return None
        argument = given[0]
    with suppress(ValueError):
        return constants.get(f"{FILE}{literal(argument, constants)}")
    return None


def last_name(call: ast.Call) -> str:
    """Return the last name of what is called."""
    return ast.unparse(call.func).rpartition(".")[2]


def _got(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return what stands in a mapping under a name, or the default: ``settings.get("rank", 8)``."""
    whole = literal(call.func.value, constants) if isinstance(call.func, ast.Attribute) else None
    name = str(literal(call.args[0], constants)) if call.args else ""
    if not isinstance(whole, dict) or isinstance(whole.get(name), OfARun):
        raise ValueError(ast.unparse(call))
    default = call.args[1] if call.args[1:] else ast.Constant(None)
    return whole[name] if name in whole else literal(default, constants)


def arguments_of(call: ast.Call) -> ast.Dict:
    """Return the arguments of a call as a mapping: ``dict(base, rank=8)`` is ``{**base, "rank": 8}``."""
    keys: list[ast.expr | None] = [None for _ in call.args]
    keys += [ast.Constant(word.arg) if word.arg else None for word in call.keywords]
    return ast.Dict(keys, [*call.args, *(word.value for word in call.keywords)])


def _variable(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return a variable of the shell, or its default: ``os.getenv("RANK", "8")``."""
    name, *default = call.args or [ast.Constant(value=...)]
    variable = f"{SHELL}{literal(name, constants)}"
    if variable in constants:
        return constants[variable]
    return literal(default[0], constants) if default else None


def _cut(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return the parts of a text: ``arguments.modules.split(",")``."""
    whole = literal(call.func.value, constants) if isinstance(call.func, ast.Attribute) else None
    signs = [literal(sign, constants) for sign in call.args]
    if not isinstance(whole, str) or len(signs) > 1 or not all(isinstance(sign, str) and sign for sign in signs):
        raise ValueError(ast.unparse(call))
    return [*whole.split(str(signs[0]) if signs else None)]


def _spelled(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return a text in other letters, or without blanks around it: ``os.getenv("BITS", "none").lower()``."""
    whole = literal(call.func.value, constants) if isinstance(call.func, ast.Attribute) and not call.args else None
    if not isinstance(whole, str):
        raise ValueError(ast.unparse(call))
    return {"lower": whole.lower, "upper": whole.upper, "strip": whole.strip}[last_name(call)]()


def _stripped(node: ast.ListComp, constants: Mapping[str, Plain]) -> Plain:
    """Return the texts of a list without blanks: ``[name.strip() for name in arguments.modules.split(",")]``."""
    parts = node.generators[0]
    texts, name = literal(parts.iter, constants), ast.unparse(parts.target)
    is_plain = ast.unparse(node.elt) in {name, f"{name}.strip()"} and len(node.generators) == 1
    if not is_plain or not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(ast.unparse(node))
    return [text.strip() for text in map(str, texts) if text.strip()]


def _filtered(node: ast.DictComp, constants: Mapping[str, Plain]) -> Plain:
    """Return the entries of a mapping that a condition lets through: ``{k: v for k, v in all.items() if k in known}``.

    What only a run tells of the condition lets all through.
    """
    parts = node.generators[0]
    key, value = ast.unparse(node.key), ast.unparse(node.value)
    is_plain = len(node.generators) == 1 and ast.unparse(parts.target).strip("()") == f"{key}, {value}"
    items = parts.iter
    of = items.func.value if isinstance(items, ast.Call) and isinstance(items.func, ast.Attribute) else None
    whole = literal(of, constants) if of is not None and is_plain else None
    if not isinstance(whole, dict) or last_name(cast("ast.Call", items)) != "items":
        raise ValueError(ast.unparse(node))
    return {name: one for name, one in whole.items() if _lets(parts.ifs, {**constants, key: name, value: one})}


def _lets(conditions: Sequence[ast.expr], constants: Mapping[str, Plain]) -> bool:
    """Whether conditions hold, as far as the script says."""
    with suppress(ValueError):
        return all(literal(condition, constants) for condition in conditions)
    return True


def _attribute(call: ast.Call, constants: Mapping[str, Plain]) -> Plain:
    """Return what ``getattr(config, "RANK", 16)`` gives: of what a script knows to have none, the default."""
    before = f"{ast.unparse(call.args[0])}."
    name = f"{before}{literal(call.args[1], constants)}"
    if name in constants:
        return constants[name]
    if len(call.args) > 2 and any(known.startswith(before) for known in constants):
        return literal(call.args[2], constants)
    raise ValueError(name)


_CALLS: Mapping[str, Callable[[ast.Call, Mapping[str, Plain]], Plain]] = {
    "getattr": _attribute,
    "getenv": _variable,
    "environ.get": _variable,
    "get": _got,
    "split": _cut,
    "dumps": lambda call, constants: json.dumps(literal(call.args[0], constants)),
    **dict.fromkeys(("lower", "upper", "strip"), _spelled),
    "path.join": lambda call, constants: _joined(call.args, constants),
}
"""What reads a call, by its name."""

_READERS: Mapping[type[ast.expr], Callable[[Any, Mapping[str, Plain]], Plain]] = {
    ast.Call: _made,
    ast.Compare: _compared,
    ast.Dict: mapping,
    ast.DictComp: _filtered,
    ast.JoinedStr: _formatted,
    ast.ListComp: _stripped,
    ast.Subscript: _part,
}
"""What reads an expression of a kind."""
