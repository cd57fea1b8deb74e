"""What a Python script has of its own behind a dot: options of its parsers, and fields of its classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.expressions import OPTION, STARTED, literal
from capacity_tui.engine.plan.imports.scripts.flow import called
from capacity_tui.engine.plan.imports.scripts.statements import assigned, within
from capacity_tui.engine.plan.options.tools import option_name


def behind_dots(tree: ast.AST, constants: Mapping[str, Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield what stands behind a dot and has a plain value: fields of classes, and a script's own options."""
    plain = {**constants, **dict(assigned(within(tree), constants))}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            fields = ((f"{OPTION}{field}", value) for field, value in assigned(within(node), plain))
            yield from ((field, value) for field, value in fields if field not in constants)
    of_parsers = [node for node in nodes if isinstance(node, ast.Call)]
    later = [word for call in of_parsers if called(call) == "set_defaults" for word in call.keywords]
    defaults = {word.arg: word.value for word in later if word.arg}
    changed = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    is_open = len(defaults) < len({word.arg for word in later})  # set_defaults(**settings)
    for call in of_parsers:
        if called(call) == "add_argument":
            yield from _own_option(call, plain, defaults, None if is_open else changed)


def _own_option(
    call: ast.Call, constants: Mapping[str, Plain], defaults: Mapping[str, ast.expr], changed: Set[str] | None
) -> Iterator[tuple[str, Plain]]:
    """Yield an option that a script has itself under the name that it is read by: as it is started, or by default.

    Args:
        defaults: those that ``set_defaults`` gives, by that name.
        changed: what the script changes behind a dot, where a switch may be set; None where that may be any.
    """
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
