"""What a Python script has of its own behind a dot: options of its parsers, and fields of its classes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from typing import NamedTuple, cast

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.scripts.expressions import FILE, OPTION, RETURNED, STARTED, OfARun, literal
from capacity_tui.engine.plan.imports.scripts.flow import SETTINGS, called, inside, local
from capacity_tui.engine.plan.imports.scripts.statements import FUNCTIONS, assigned, fields_of, of_itself, within
from capacity_tui.engine.plan.options.tools import Tool, option_name

_PARSER = re.compile(r"(?:Argument|Trl)Parser$")  # What reads options into fields of the classes that it is given

_PARSES = "parse_args"  # What returns the options of a script

_READ = re.compile(
    r"""\.([A-Za-z_]\w*)(?!\w*\()|\[["'](\w+)["']\]|\bget\(["'](\w+)["']"""
)  # What reads a value by name


class OwnSettings(NamedTuple):
    """A class of a script that is one of a library with fields of its own: ``class Own(TrainingArguments)``."""

    base: str  # what it is called in the library
    owner: Tool  # whose that is
    data: dict[str, Plain]  # fields with their values
    lines: dict[KeyPath, int]

    def document(self, name: str, arguments: Document | None = None) -> Document:
        """Return its fields as options, with the arguments that go before them."""
        given = arguments.data if arguments is not None and isinstance(arguments.data, dict) else {}
        lines = arguments.lines if arguments is not None else {}
        return Document({**self.data, **given}, name, {**self.lines, **lines})


def own_settings(
    tree: ast.Module, constants: Mapping[str, Plain], owner_of: Callable[[str], Tool | None]
) -> Iterator[tuple[str, OwnSettings]]:
    """Yield the classes of a script that are made of one for settings whose owner is known, by their names."""
    for node in (one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)):
        for base in (ast.unparse(base).rpartition(".")[2] for base in node.bases):
            if SETTINGS.search(base) and (owner := owner_of(base)) is not None:
                yield node.name, OwnSettings(base, owner, *_given_fields(node, constants))
                break


def _given_fields(node: ast.ClassDef, constants: Mapping[str, Plain]) -> tuple[dict[str, Plain], dict[KeyPath, int]]:
    """Return the fields that a class gives a value, as the script is started or by default, and their lines."""
    made = fields_of(node, constants)
    values = {
        ast.unparse(part.target if isinstance(part, ast.AnnAssign) else part.targets[0]): part.value
        for part in node.body
        if isinstance(part, ast.AnnAssign | ast.Assign) and part.value is not None
    }
    data = {name: made.get(name, OfARun(ast.unparse(value))) for name, value in values.items()}
    started = {name: constants[key] for name in data if (key := f"{STARTED}{name}") in constants}
    return data | started, {(name,): value.lineno for name, value in values.items()}


def parsed_into(call: ast.Call) -> Iterator[str]:
    """Yield the classes whose fields a call reads from options: ``HfArgumentParser((ModelArguments, Own))``."""
    given = [*call.args[:1], *(word.value for word in call.keywords)] if _PARSER.search(called(call)) else []
    for value in given:
        yield from map(ast.unparse, value.elts if isinstance(value, ast.Tuple | ast.List) else [value])


def behind_dots(tree: ast.AST, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield what stands behind a dot and has a plain value: fields of classes, and a script's own options."""
    plain = {**constants, **dict(assigned(within(tree), constants))}
    nodes = list(ast.walk(tree))
    fields = [pair for node in nodes if isinstance(node, ast.ClassDef) for pair in fields_of(node, plain).items()]
    yield from ((f"{OPTION}{field}", value) for field, value in fields if f"{OPTION}{field}" not in constants)
    yield from _of_sections(constants, Counter(field for field, _ in fields))
    of_parsers = [node for node in nodes if isinstance(node, ast.Call)]
    later = [word for call in of_parsers if called(call) == "set_defaults" for word in call.keywords]
    defaults = {word.arg: word.value for word in later if word.arg}
    changed = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    is_open = len(defaults) < len({word.arg for word in later})  # set_defaults(**settings)
    added = (call for call in of_parsers if called(call) == "add_argument")
    options = dict(pair for call in added for pair in _own_option(call, plain, defaults, None if is_open else changed))
    yield from options.items()
    yield from _set_later(tree, plain, options) if options else ()


def _set_later(tree: ast.AST, plain: Mapping[str, Plain], options: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield the options that a script itself sets to a plain value behind its parser: ``args.fp16 = False``."""
    for part in (tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))):
        made = [(node.targets[0], node.value) for node in within(part) if isinstance(node, ast.Assign)]
        calls = ((target, value) for target, value in made if isinstance(value, ast.Call))
        for owner in {ast.unparse(target) for target, value in calls if called(value) == _PARSES}:
            given = {f"{owner}.{name.removeprefix(OPTION)}": value for name, value in options.items()}
            for name, value in of_itself(part, {**plain, **options, **given}, owner):
                if name in given and not isinstance(value, OfARun):
                    yield f"{OPTION}{name.partition('.')[2]}", value


def of_functions(tree: ast.AST, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield the mappings that functions of a script end with, and what objects set of themselves as they are made."""
    of_objects: dict[str, list[Plain]] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
        last = function.body[-1]
        if isinstance(last, ast.Return) and isinstance(last.value, ast.Dict | ast.Name):
            with suppress(ValueError):
                if isinstance(value := literal(last.value, inside(function, constants, tree)), dict):
                    yield f"{function.name}{RETURNED}", value
        elif function.name == "__init__":
            for name, value in of_itself(function, inside(function, constants, tree)):
                of_objects.setdefault(name, []).append(value)
    yield from ((name, values[-1]) for name, values in of_objects.items() if all(one == values[0] for one in values))


def made_global(tree: ast.AST, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield names of a script that a function of it gives a plain value, as ``global BATCH`` lets it."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            names = {name for node in within(function) if isinstance(node, ast.Global) for name in node.names}
            known = local(function, constants) if names else {}
            yield from ((name, known[name]) for name in names if name in known)


def _of_sections(constants: Mapping[str, Plain], fields: Mapping[str, int]) -> Iterator[tuple[str, Plain]]:
    """Yield the fields that options in sections give, as ``--train.batch_size 8``, where one class alone has each."""
    started = [name for name in constants if name.startswith(STARTED) and "." in name]
    given = Counter(name.rpartition(".")[2] for name in started)
    for name in started:
        field = name.rpartition(".")[2]
        if field in fields:
            is_one = (given[field], fields[field]) == (1, 1)
            yield f"{OPTION}{field}", constants[name] if is_one else OfARun(name.removeprefix(STARTED))


def _own_option(
    call: ast.Call, constants: Mapping[str, Plain], defaults: Mapping[str, ast.expr], changed: Set[str] | None
) -> Iterator[tuple[str, Plain]]:
    """Yield an option of a script under the name it is read by: as it is started or changed, or by default."""
    words = {word.arg: word.value for word in call.keywords if word.arg}
    names = [name for name in map(constant_of, call.args) if isinstance(name, str) and name.startswith("-")]
    first = next((name for name in names if name.startswith("--")), names[0] if names else "")
    name = str(constant_of(words["dest"])) if "dest" in words else option_name(first)
    action = str(constant_of(words["action"])) if "action" in words else ""
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


def constant_of(node: ast.expr) -> object:
    """Return what a constant is; None for what is none."""
    return node.value if isinstance(node, ast.Constant) else None


def variables_set(text: str) -> Mapping[str, str]:
    """Return the variables of the shell that a script sets itself: ``os.environ["CUDA_VISIBLE_DEVICES"] = "0"``."""
    tree = ast.parse(text)
    constants = dict(assigned(within(tree), {}))
    variables: dict[str, str] = {}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Subscript) and ast.unparse(target.value).removeprefix("os.") == "environ":
            with suppress(ValueError):
                variables[str(constant_of(target.slice))] = str(literal(cast("ast.Assign", node).value, constants))
    return variables


def values_by_name(text: str, constants: Mapping[str, Plain]) -> Mapping[str, Plain]:
    """Return what a script reads behind a dot or in brackets: its own options, and entries of files of options.

    An entry that stands in several places with different values is left out.
    """
    values: dict[str, list[Plain]] = {}
    for key, value in constants.items():
        if key.startswith(FILE):
            for name, entry in _entries(value):
                values.setdefault(name, []).append(entry)
    named = {name: of[0] for name, of in values.items() if all(one == of[0] for one in of)}
    own = {key.removeprefix(OPTION): value for key, value in constants.items() if key.startswith(OPTION)}
    read = {name for match in _READ.finditer(text) for name in match.groups() if name}
    return {name: value for name, value in {**named, **own}.items() if name in read and not isinstance(value, OfARun)}


def _entries(data: Plain) -> Iterator[tuple[str, Plain]]:
    for name, value in data.items() if isinstance(data, dict) else ():
        yield from _entries(value) if isinstance(value, dict) else [(name, value)]
