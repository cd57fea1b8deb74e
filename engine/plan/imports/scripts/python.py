"""Python scripts that train or serve: what they call, and what they assign to a configuration."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from itertools import islice
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple, cast

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.scripts.expressions import (
    FILE,
    OPTION,
    SHELL,
    STARTED,
    FurtherOptions,
    OfARun,
    literal,
)
from capacity_tui.engine.plan.imports.scripts.fields import (
    behind_dots,
    made_global,
    of_functions,
    own_settings,
    parsed_into,
    values_by_name,
)
from capacity_tui.engine.plan.imports.scripts.flow import (
    SETTINGS,
    called,
    changed_later,
    configured,
    inside,
    maker_of,
    makers,
    names_behind,
    reached,
    saved_to,
    unused,
)
from capacity_tui.engine.plan.imports.scripts.statements import assigned, imported, parsed, within
from capacity_tui.engine.plan.options.tools import Tool, tools

_IMPORT = re.compile(r"^(?:from\s+[\w.]+\s+import\s|import\s+\w)", re.MULTILINE)

OPTIONS_FILE = re.compile(r"\.(?:ya?ml|json|toml)$")  # What the name of a file of options ends with

_MOST_FILES = 50  # Of options that one script is looked through for

_LOADS = "from_pretrained"

_MODEL = re.compile(r"Model|For[A-Z]")  # In the name of a class of models: AutoModel, LlamaForCausalLM

_HEAD = re.compile(r"For[A-Z]\w*$")  # What such a name ends with where it says what the model is for

_RETURNED = "return"  # What stands for the configuration that a function returns without giving it a name

_OF_TOML: Mapping[str, Plain] = {"true": True, "false": False}  # Which may look like settings in Python

_FURTHER = "**"  # Before what holds further arguments of a call


class _Condition(FurtherOptions):
    """A condition on which a call is made, of which only a run tells whether it holds."""

    __slots__ = ()
    why = "only running the script tells {}: counted as if it holds"


class _Foreign(FurtherOptions):
    """What is called as something of a tool, and comes from elsewhere."""

    __slots__ = ()
    why = "{} is not of the library that is known: read as if it were"


def is_python(text: str) -> bool:
    """Whether a text is a Python script."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return _IMPORT.search(text) is not None and bool(ast.parse(text))
    return False


class Settings(NamedTuple):
    """What a text of Python gives values to that does nothing else."""

    document: Document
    parts: Set[str]  # names of which other settings are made


def settings_alone(text: str, name: str) -> Settings | None:
    """Return the settings of a text that is assignments of Python and imports alone, as of nanoGPT and XTuner.

    Names of what is imported stand for it. None for other texts.
    """
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = list(within(ast.parse(text)))
        lines: dict[KeyPath, int] = {
            (target.id,): node.lineno
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if lines and all(map(_is_setting, nodes)):
            data = dict(assigned(nodes, {**_OF_TOML, **{name: name for node in nodes for name, _ in _sources(node)}}))
            parts = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
            return Settings(Document(data, name, lines), parts)
    return None


def _is_setting(node: ast.AST) -> bool:
    """Whether a part of a script is no statement that does anything but set names."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    sets = isinstance(node, ast.Assign | ast.AugAssign | ast.If | ast.Import | ast.ImportFrom)
    return is_text or sets or not isinstance(node, ast.stmt)


def calls(
    text: str,
    name: str,
    given: Mapping[str, Plain] = MappingProxyType({}),
    environment: Mapping[str, str] = MappingProxyType({}),
    module: Callable[[str], str | None] | None = None,
    options: Callable[[str], Plain] | None = None,
) -> Iterator[tuple[Document, Tool, str]]:
    """Yield the arguments of calls that a tool knows, the tool, and what is called, in the order of the script.

    Args:
        given: the options that it is started with.
        environment: the variables of the shell that starts it.
        module: returns the text of a module that lies beside it, by its dotted name; None for others.
        options: returns what stands in a file of options, by the path that the script has for it; None for others.
    """
    tree = configured(ast.parse(text))
    constants = constants_of(tree, given, environment, module, options)
    with suppress(RecursionError):
        steps = sorted(reached(tree, constants, constants, tree), key=lambda pair: pair[0].lineno)
        made_for_nothing = set(unused(tree, steps))
        sources = dict(_sources(tree))
        objects = makers(tree)
        of_itself = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and not node.bases}
        of_itself -= {name for known in tools().values() for name in known.starters}  # a DPOTrainer learns from pairs
        own = dict(own_settings(tree, constants, caller_of))
        saved: set[PurePath] = set()
        for step, known, condition in steps:
            if not isinstance(step, ast.Call) or step in made_for_nothing:
                continue
            call = step
            saved.update(saved_to(call, known))
            for settings in (own[one] for one in parsed_into(call) if one in own):
                yield settings.document(name), settings.owner, settings.base
            if called(call) in of_itself:
                continue
            made = own.get(_called(call))
            name_called, source = _called(call) if made is None else made.base, _source_of(call, sources)
            maker = maker_of(step, objects)
            if maker is not None and caller_of(method := f"{called(maker)}.{called(call)}") is not None:
                # model = YOLO("yolo11m.pt"); model.train(epochs=100)
                call = ast.copy_location(ast.Call(call.func, [*maker.args[:1], *call.args], call.keywords), call)
                name_called, source = method, _source_of(maker, sources)
            if (owner := caller_of(name_called) or caller_of(source)) is not None:
                is_open = any(word.arg == name_called for word in call.keywords)
                where = "" if condition is None else ast.unparse(condition)
                remarks: dict[str, FurtherOptions] = {f"if {where}": _Condition(where)} if where else {}
                remarks |= {source: _Foreign(source.lstrip("."))} if _is_foreign(source, owner, module) else {}
                document = arguments_given(call, known, name, changed_later(call, steps, known), remarks)
                whole = document if made is None else made.document(name, document)
                if saved.isdisjoint(owner.folders_of_model(document.data)):  # else what it has made itself
                    yield whole, owner, "" if is_open else name_called


def constants_of(
    tree: ast.Module,
    given: Mapping[str, Plain],
    environment: Mapping[str, str],
    module: Callable[[str], str | None] | None,
    options: Callable[[str], Plain] | None,
) -> dict[str, Plain]:
    """Return the names that have a plain value in a script, for the same arguments as ``calls``."""
    shell: dict[str, Plain] = {f"{SHELL}{variable}": value for variable, value in environment.items()}
    constants = {**dict(imported(tree, module, shell) if module is not None else ()), **shell}
    constants |= {f"{before}{option}": value for option, value in given.items() for before in (OPTION, STARTED)}
    if options is not None:
        texts = map(str, (*given.values(), *environment.values(), *_texts(tree)))
        paths = dict.fromkeys(filter(OPTIONS_FILE.search, texts))
        named = ((path, options(path)) for path in islice(paths, _MOST_FILES))
        constants |= {f"{FILE}{path}": read for path, read in named if isinstance(read, dict)}
    constants |= dict(behind_dots(tree, constants))
    constants |= dict(of_functions(tree, {**constants, **dict(assigned(within(tree), constants))}))
    constants |= dict(assigned(within(tree), constants))
    return constants | dict(made_global(tree, constants))


def own_values(
    text: str,
    given: Mapping[str, Plain],
    environment: Mapping[str, str],
    module: Callable[[str], str | None],
    options: Callable[[str], Plain],
) -> Mapping[str, Plain]:
    """Return the plain values that a script reads by name, for the same arguments as ``calls``."""
    return values_by_name(text, constants_of(configured(ast.parse(text)), given, environment, module, options))


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that stand in a script."""
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def names_read(text: str) -> Set[str]:
    """Return the names of a script on which the calls depend that a tool knows."""
    tree = ast.parse(text)
    objects = makers(tree)
    calls_made = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = ((node, maker_of(node, objects)) for node in calls_made)
    methods = {node: f"{called(maker)}.{called(node)}" if maker is not None else "" for node, maker in named}
    known = {node for node, method in methods.items() if (caller_of(_called(node)) or caller_of(method)) is not None}
    return names_behind(known, tree)


def _sources(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield names that a script imports or makes with where they come from: some tell by that alone what they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            before = f"{'.' * node.level}{node.module or ''}"
            yield from ((alias.asname or alias.name, f"{before}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ClassDef) and not any(map(_is_known, node.bases)):
            yield node.name, f".{node.name}"


def _is_known(base: ast.expr) -> bool:
    """Whether a class that another one is made of may be one of a tool."""
    return caller_of(ast.unparse(base).rpartition(".")[2]) is not None


def _source_of(call: ast.Call, sources: Mapping[str, str]) -> str:
    """Return where what is called comes from, with its name; empty where the script does not say."""
    whole = ast.unparse(call.func)
    first, dot, behind = whole.partition(".")
    return f"{sources[first]}{dot}{behind}" if first in sources else ""


def _is_foreign(source: str, owner: Tool, module: Callable[[str], str | None] | None) -> bool:
    """Whether what is called comes from elsewhere than the libraries of a tool; a module beside may hand theirs on."""
    before, _, name = source.rpartition(".")
    if not source or not owner.libraries or before.partition(".")[0] in owner.libraries:
        return False
    text = module(before.lstrip(".")) if module is not None and before.strip(".") else None
    tree = parsed(text)
    made = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    # One of its own under the same name is made of something else: class GRPOTrainer(Trainer).
    is_other = any(name not in (ast.unparse(base).rpartition(".")[2] for base in node.bases) for node in made)
    return text is None or is_other or f".{name}" in dict(_sources(tree)).values()


def caller_of(called: str) -> Tool | None:
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
            made = _Made(name, outside if isinstance(function, ast.Module) else inside(function, outside, tree))
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
            if isinstance(value, ast.Call) and caller_of(_called(value)) is None:
                self.by[target] = ast.unparse(value.func)
                self._arguments = cast("dict[str, Plain]", arguments_given(value, self._constants, self._name).data)
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
    function, name = call.func, called(call)
    base = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
    head = _HEAD.search(base)
    for whole in (f"{base}.{name}", f"{head[0]}.{name}" if head is not None else ""):
        if caller_of(whole) is not None:
            return whole
    return "" if name == _LOADS and base and _MODEL.search(base) is None else name


def arguments_given(
    call: ast.Call,
    constants: Mapping[str, Plain],
    name: str,
    later: Iterable[ast.keyword] = (),
    remarks: Mapping[str, FurtherOptions] = MappingProxyType({}),
) -> Document:
    """Return the arguments of a call; the first one without a name is its ``model``, but of what makes settings.

    Args:
        later: what is set behind a dot of what the call made.
        remarks: what is to be said of it, by what that is about.
    """
    data: dict[str, Plain] = dict(remarks)
    lines: dict[KeyPath, int] = {(key,): call.lineno for key in data}
    first = () if SETTINGS.search(called(call)) else call.args[:1]
    given = [("model", argument) for argument in first]
    given += [(word.arg or f"{_FURTHER}{ast.unparse(word.value)}", word.value) for word in (*call.keywords, *later)]
    for key, value in given:
        lines[key,] = value.lineno
        try:
            data[key] = literal(value, constants)
        except ValueError:
            data[key] = OfARun(ast.unparse(value))
        further = data.pop(key) if key.startswith(_FURTHER) else {}
        for option, part in further.items() if isinstance(further, dict) else ():
            data[option], lines[option,] = part, value.lineno
        if not isinstance(further, dict):
            data[key] = FurtherOptions(key.removeprefix(_FURTHER))
    return Document(data, name, lines)
