"""Commands that a Python script starts, as lines of a shell, and the machines that its decorators ask for."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote

from capacity_tui.engine.catalog import Document, Plain
from capacity_tui.engine.plan.imports.scripts.expressions import OfARun, last_name, literal
from capacity_tui.engine.plan.imports.scripts.flow import inside, local
from capacity_tui.engine.plan.imports.scripts.python import arguments_given, caller_of, constants_of
from capacity_tui.engine.plan.imports.scripts.statements import FUNCTIONS, holds
from capacity_tui.engine.plan.options.tools import Tool

_STARTS = re.compile(
    r"(?:(?:subprocess|sp)\.(?:run|Popen|call|check_call|check_output)|Popen|check_call|check_output"
    r"|os\.(?:system|popen|exec[vl]p?e?)|asyncio\.create_subprocess_(?:exec|shell))"
)
"""What is called to start a program."""

_JOINS = frozenset({"join", "split"})  # Of the words of a command one text, or of a text its words
_ADDS = frozenset({"extend", "append"})  # What puts words behind those of a list
_ENTRY, _FOLDER, _HYPERPARAMETERS = "entry_point", "source_dir", "hyperparameters"  # What a job is given that runs one
_NO_NAME = re.compile(r"\W+")  # What the name of a variable of a shell does not have


Modules = Callable[[str], str | None]  # Returns the text of a module that lies beside a script
Options = Callable[[str], Plain]  # Returns what stands in a file of options that it names


def started_commands(text: str, module: Modules, options: Options) -> str:
    """Return the commands that a script starts as those of a shell, each on its line; empty where it starts none."""
    tree = ast.parse(text)
    constants = constants_of(tree, {}, {}, module, options)
    lines = sorted(_Commands(tree, constants).of(tree.body, constants), key=lambda line: line[0])
    if not any(is_command for *_, is_command in lines):
        return ""
    shell, at = "", 1
    for number, words, _ in lines:
        shell += "\n" * (number - at) if number > at else "; " if shell else ""
        shell, at = shell + words, max(at, number)
    return shell.replace("then; ", "then ").replace("else; ", "else ") + "\n"


def machines_asked_for(text: str, name: str, module: Modules, options: Options) -> Iterator[tuple[Document, Tool]]:
    """Yield what decorators ask for, as ``@app.function(gpu="H100:2")``, and the tool of each: of what starts programs.

    Where nothing that is decorated starts one, all count.
    """
    tree = ast.parse(text)
    asked = [(one, starts, owner) for one, starts in _decorating(tree) if (owner := _owner(one)) is not None]
    constants = constants_of(tree, {}, {}, module, options) if asked else {}
    for call, starts, owner in asked:
        if starts or not any(other for _, other, _ in asked):
            yield arguments_given(_Named().visit(copy.deepcopy(call)), constants, name), owner


class _Named(ast.NodeTransformer):
    """Gives devices that are made by calls their names: ``modal.gpu.A100(count=2, size="80GB")`` is ``A100-80GB:2``."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or not ast.unparse(node.func.value).endswith("gpu"):
            return node
        words = {word.arg: word.value for word in node.keywords}
        size, count = words.get("size"), words.get("count", ast.Constant(1))
        kind = f"{node.func.attr}-{size.value!s}:" if isinstance(size, ast.Constant) else f"{node.func.attr}:"
        return ast.copy_location(ast.JoinedStr([ast.Constant(kind), ast.FormattedValue(count, -1)]), node)


def _owner(call: ast.Call) -> Tool | None:
    """Return the tool whose decorator a call is."""
    return caller_of(ast.unparse(call.func))


class _Commands:
    """Statements of a script that make and start commands."""

    def __init__(self, tree: ast.Module, constants: Mapping[str, Plain]) -> None:
        self._tree, self._constants = tree, constants
        self._lists: set[str] = set()  # names of lists of words

    def of(self, body: Sequence[ast.stmt], known: Mapping[str, Plain]) -> Iterator[tuple[int, str, bool]]:
        """Yield the lines of a shell that say what statements do, with their numbers; and whether each is a command."""
        for node in body:
            if isinstance(node, FUNCTIONS):
                yield from self.of(node.body, inside(node, self._constants, self._tree))
            elif isinstance(node, ast.ClassDef):
                yield from self.of(node.body, local(node, known))
            elif isinstance(node, ast.If):
                yield from self._branches(node, known)
            elif isinstance(node, ast.For | ast.While | ast.With | ast.AsyncWith | ast.Try):
                yield from self.of(node.body, known)
            else:
                yield from self._statement(node, known)

    def _branches(self, node: ast.If, known: Mapping[str, Plain]) -> Iterator[tuple[int, str, bool]]:
        """Yield what is done where a condition holds, and where it does not: both where only a run tells."""
        decided = holds(node, known)
        if decided is not None:
            yield from self.of(node.body if decided else node.orelse, known)
            return
        branches = [list(self.of(branch, known)) for branch in (node.body, node.orelse)]
        if any(branches):
            yield node.lineno, f"if {self._open(node.test)}; then", False
            yield from branches[0] or [(node.lineno, ":", False)]
            if branches[1]:
                yield branches[1][0][0], "else", False
                yield from branches[1]
            yield node.end_lineno or node.lineno, "fi", False

    def _statement(self, node: ast.stmt, known: Mapping[str, Plain]) -> Iterator[tuple[int, str, bool]]:
        value = getattr(node, "value", None)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        name = targets[0].id if isinstance(targets[0], ast.Name) else ""
        if isinstance(value, ast.Call) and last_name(value) in _ADDS and isinstance(value.func, ast.Attribute):
            given = value.args[0] if value.args else ast.Constant(None)
            name, added = ast.unparse(value.func.value), [given]
            words = self._words(given, known) if last_name(value) == "extend" else self._listed(added, known)
            if name in self._lists and words is not None:
                yield node.lineno, f"{name}+=({words})", False
        elif name and isinstance(value, ast.expr) and (words := self._words(value, known)) is not None:
            self._lists.add(name)
            yield node.lineno, f"{name}{'+' if isinstance(node, ast.AugAssign) else ''}=({words})", False
        for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
            if _STARTS.fullmatch(ast.unparse(call.func)) and call.args:
                words = self._command(call, known)
                if words:
                    yield node.end_lineno or node.lineno, words, True
            elif any(word.arg == _ENTRY for word in call.keywords):
                yield node.end_lineno or node.lineno, self._entry(call, known), True

    def _entry(self, call: ast.Call, known: Mapping[str, Plain]) -> str:
        """Return the command by which a job runs a script: ``HuggingFace(entry_point="train.py")``."""
        given = {word.arg: word.value for word in call.keywords}
        parts = [given[name] for name in (_FOLDER, _ENTRY) if name in given]
        options: Plain = {}
        with suppress(ValueError):
            options = literal(given[_HYPERPARAMETERS], known) if _HYPERPARAMETERS in given else {}
        pairs = options.items() if isinstance(options, dict) else ()
        words = (f"--{name} {quote(str(value))}" for name, value in pairs if not isinstance(value, OfARun))
        return " ".join(("python", "/".join(self._word(part, known) for part in parts), *words))

    def _command(self, call: ast.Call, known: Mapping[str, Plain]) -> str:
        """Return the command that a call starts, as far as the script says it."""
        if "exec" in last_name(call):
            lists = [words for part in call.args if (words := self._words(part, known)) is not None]
            return lists[-1] if lists else self._listed(call.args, known)
        words = self._words(call.args[0], known)
        return self._text(call.args[0], known) if words is None else words

    def _words(self, value: ast.expr, known: Mapping[str, Plain]) -> str | None:
        """Return the words of a list; None for what is no list of words."""
        if isinstance(value, ast.List | ast.Tuple):
            return self._listed(value.elts, known)
        if isinstance(value, ast.Name) and value.id in self._lists:
            return f'"${{{value.id}[@]}}"'
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            parts = [self._words(part, known) for part in (value.left, value.right)]
            return None if None in parts else " ".join(filter(None, parts))
        if isinstance(value, ast.IfExp):
            with suppress(ValueError):
                return self._words(value.body if literal(value.test, known) else value.orelse, known)
        if isinstance(value, ast.Call) and last_name(value) in _JOINS and value.args:
            words = self._words(value.args[-1], known)
            return self._text(value.args[-1], known) or None if words is None else words
        return None

    def _listed(self, values: Sequence[ast.expr], known: Mapping[str, Plain]) -> str:
        """Return words that stand one by one, those of lists in their place among them."""
        return " ".join(
            self._several(value.value, known) if isinstance(value, ast.Starred) else self._word(value, known)
            for value in values
        )

    def _several(self, value: ast.expr, known: Mapping[str, Plain]) -> str:
        """Return the words of a list, which may be one that only a run tells."""
        words = self._words(value, known)
        return f'"${{{_name_of(value)}[@]}}"' if words is None else words

    def _word(self, value: ast.expr, known: Mapping[str, Plain]) -> str:
        """Return one word; what only a run tells is a variable that nothing sets."""
        with suppress(ValueError):
            if (known_value := literal(value, known)) is not None:
                return quote(str(known_value))
        return f'"{self._open(value)}"'

    def _text(self, value: ast.expr, known: Mapping[str, Plain]) -> str:
        """Return a text of a command; empty for what is none."""
        with suppress(ValueError):
            whole = literal(value, known)
            return "" if isinstance(whole, OfARun) or not isinstance(whole, str) else whole
        if not isinstance(value, ast.JoinedStr):
            return ""
        text = ""
        for part in value.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            try:
                text += str(literal(inner, known))
            except ValueError:
                text += self._words(inner, known) or self._open(inner)
        return text

    @staticmethod
    def _open(value: ast.expr) -> str:
        """Return a variable of a shell that stands for what only a run tells."""
        return f"${{{_name_of(value)}}}"


def _name_of(value: ast.expr) -> str:
    """Return what a variable of a shell is called that stands for an expression."""
    return _NO_NAME.sub("_", ast.unparse(value)).strip("_") or "value"


def _decorating(tree: ast.Module) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls that decorate functions and classes, and whether what they decorate starts a program.

    And those of jobs that run a script, which do.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and any(word.arg == _ENTRY for word in node.keywords):
            yield node, True
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            starts = any(
                isinstance(part, ast.Call) and _STARTS.fullmatch(ast.unparse(part.func)) for part in ast.walk(node)
            )
            yield from ((one, starts) for one in node.decorator_list if isinstance(one, ast.Call))
