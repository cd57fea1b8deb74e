"""Options of a document or a command by the table of their tool, and whose a file is: who knows most of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from capacity_tui.engine.catalog import Document, KeyPath, Plain, nearest
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.edit import leaves
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.files.loading import OLDER_KEYS, names_model
from capacity_tui.engine.plan.imports.scripts import Command, FurtherOptions, OfARun
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Reading, Remark, settings_from
from capacity_tui.engine.plan.options.tools import NOTHING, Option, Tool, tool, tools, word_of
from capacity_tui.engine.plan.options.values import ANY, OPEN, OptionValues, shown, values_of

_MOST = 3  # Tools that a refusal names

_FEWEST_TELLING = 2  # Options by which a program that is none of a tool's is known for one

LEAST_KNOWN = 2  # A file is a tool's of which it knows one option in so many

_OLDER = frozenset(".".join(path) for path in OLDER_KEYS)


def known_tools() -> tuple[str, ...]:
    """Return the names of the tools whose files or commands are read."""
    return tuple(dict.fromkeys(known.short_name for known in tools().values() if known.signs or known.programs))


def nearest_tools(data: Iterable[Plain] = ()) -> str:
    """Return in words the tools that know most options of some data, and where all of them are listed."""
    options = [path for part in data if isinstance(part, dict) for path in options_of(part)]
    known = {one.short_name: sum(map(one.knows_option, options)) for one in tools().values() if one.signs}
    most = sorted((name for name in known if known[name] >= _FEWEST_TELLING), key=lambda name: -known[name])[:_MOST]
    near = ", ".join(f"{name} ({known[name]} of {len(options)} options known)" for name in most)
    return f"{f'nearest: {near}; ' if near else ''}capacity-tui help import lists the tools that are read"


def tool_of(data: Plain, named: str = "") -> Tool | None:
    """Return the tool that knows most options of some data, and has a sign among them or is named; None where none has.

    Options count one by one, those in sections too: a section that is called as one of a tool is not yet the tool's.
    """
    if not isinstance(data, dict):
        return None
    options = list(options_of(data))
    scored = [
        (sum(candidate.knows_option(path) for path in options), candidate)
        for candidate in tools().values()
        if candidate.id == named or any(candidate.is_signed(path) for path in options)
    ]
    best = max((score for score, _ in scored), default=0)
    known = best * LEAST_KNOWN >= len(options)
    return next((candidate for score, candidate in scored if score == best and known), None)


def owner_of(command: Command) -> Tool | None:
    """Return the tool that a command starts, as its program says or its options; None for another program.

    A script may be called as one of a tool, as ``run_dpo.py``: it is that one where the tool knows its options. Options
    of one letter tell none, and ``ulimit -c 0`` has too few.
    """
    data = command.document.data if isinstance(command.document.data, dict) else {}
    options, owner = list(options_of(data)), command.owner
    if owner is not None and (
        not command.names_script or sum(map(owner.knows_option, options)) * LEAST_KNOWN >= len(options)
    ):
        return owner
    if command.program and len(data) < _FEWEST_TELLING and not any("." in key for key in data):
        return None
    given = {key: value for key, value in data.items() if not command.program or len(key.lstrip("-")) > 1}
    alike = tool_of(given)
    counts = alike is not None and any(alike.named(key) in alike.options for key in given)
    return alike if counts or not command.program else None


def options_of(data: Mapping[str, Plain], above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of the options in some data."""
    for key, value in data.items():
        path = (*above, str(key))
        if isinstance(value, FurtherOptions):
            continue
        if isinstance(value, dict) and value:
            yield from options_of(value, path)
        else:
            yield path


def refuse_files_of_tools(document: Document) -> None:
    """Raise PlanError where a document that is to be a plan is a configuration of another tool."""
    if not is_of_tool(document):
        return

    tool, file_place = tool_of(document.data), Place(document.file)
    if tool is None:
        hint = f"{nearest_tools([document.data])}; or write model: {{name: ...}} and hardware: {{name: ...}}"
        raise PlanError("neither a plan nor a configuration of a known tool", hint=hint, place=file_place)
    hint = f"commands read it with --import {document.file}"
    raise PlanError(f"a configuration of {tool.short_name}, not a plan", hint=hint, place=file_place)


def is_of_tool(document: Document) -> bool:
    """Whether a document is rather a configuration of another tool, known or not, than a plan.

    Sections of plans and of tools may be called the same: a plan names its model, and most keys are a plan's.
    """
    data = document.data
    if not isinstance(data, dict) or names_model(data):
        return False

    return tool_of(data) is not None or not _is_mostly_plan(data)


def _is_mostly_plan(data: Mapping[str, Plain]) -> bool:
    """Whether most of its options are fields of plans; a misspelt plan is still one."""
    paths = [path for path, _ in leaves(data, (Key.MODEL_SPEC, Key.HARDWARE_SPEC))]
    return 2 * sum(path in all_fields() or path in _OLDER for path in paths) >= len(paths)


_OFF = OPEN | {"false", "0"}
_OF_THE_SHELL = re.compile(r"\$\{?[.#!]*\w|\$\(|`")  # A variable, or what a command prints
_OUTER_FOLDER = re.compile(r"^\$[^/\s]*/(?:[^/]*\$[^/]*/)*")  # Folders above a file that only the shell knows
_UNASKED = frozenset({Key.TRAINING_LEARNING_RATE})
_ARGUMENTS = frozenset({"$@", "$*", "${@}"})  # Those of a script itself
_SHORTEST = 6  # Letters of a name that stand for all of it
_SERVED, _NOT_TRAINED = "infer", "nothing in it trains"


def read_document(document: Document, owner: Tool, path: KeyPath = ()) -> Reading:
    """Return the settings of a document of a tool, or of a section; PlanError where a value cannot be."""
    reading = Reading(document.file or "", owner)
    section: Plain = document.data
    for part in path:
        section = section[part] if isinstance(section, dict) else None  # type: ignore[index]
    if isinstance(section, dict):
        _Options(document, reading).section(section, owner, path, "")
    return reading


class _Options:
    """A document while it is read."""

    def __init__(self, document: Document, reading: Reading) -> None:
        self._document = document
        self._reading = reading
        self._unread: dict[str, Place] = {}  # options that are given, by what only a run tells, or no value of theirs

    def section(self, data: Mapping[str, Plain], owner: Tool, path: KeyPath, above: str) -> None:
        """Read the options of a tool; ``above`` is the name of their section, dot included."""
        seen: set[str] = set()
        further = {key: value for key, value in data.items() if isinstance(value, FurtherOptions)}
        for key in (key for key in data if key not in further):
            seen |= self._option(above + key, data[key], owner, (*path, key))
        if not above:
            # Arguments of a script are none where it can do without, as one that names its model.
            is_whole = any(setting.field == "model" for setting in self._reading.settings)
            for key in (key for key in further if not (is_whole and key in _ARGUMENTS)):
                why = further[key].why.format(shown(further[key]))
                self._reading.unmodelled.append(Remark(self._document.place(*path, key), why))
            self._defaults(owner, seen, path)
            names = {owner.named(key) for key in data}
            # A file of options that only the shell knows may train.
            in_files = {option.name for option in owner.options.values() if option.tool}
            if owner.trained_by and not path and not names & {*owner.trained_by, *in_files}:
                source = ImportedSetting("", None, Place(self._document.file), _NOT_TRAINED, owner.id)
                self._add({Key.TASK: _SERVED}, source)

    def _option(self, written: str, value: Plain, owner: Tool, path: KeyPath) -> set[str]:
        """Read one option; return the names of what was given."""
        name, place = _name_of(written, owner), self._document.place(*path)
        if name not in owner.known and name.startswith("no_") and name[3:] in owner.known and value is True:
            name, value = name[3:], False
        option = owner.options.get(name)
        if option is not None and option.tool and isinstance(value, str):
            value = _OUTER_FOLDER.sub("", value)
        # Of a file that another tool reads the name is enough, wherever it lies.
        written_as = PurePath(value).name if option is not None and option.tool and isinstance(value, str) else value
        is_open = isinstance(value, OfARun) or (
            isinstance(written_as, str) and _OF_THE_SHELL.search(written_as) is not None
        )
        if is_open:
            # A model that is missing is asked for, and the rate of learning moves no figure.
            if option is not None and (option.path or option.meaning != "served") and option.path not in _UNASKED:
                knows = "running the script tells" if isinstance(value, OfARun) else "the shell knows"
                counted = "give that file too" if option.tool else "the tool's default counts"
                counted = "--model says which it is" if option.path == "model" else counted
                why = f"only {knows} {shown(value)}: {counted}"
                self._reading.unmodelled.append(Remark(place, why))
            value = None
        has_sections = any(known.startswith(f"{name}.") for known in owner.known)
        if has_sections and isinstance(value, list) and value and isinstance(value[0], dict):
            value, path = value[0], (*path, 0)  # of several the first counts
        is_section = isinstance(value, dict) and has_sections
        if option is not None and not (is_section and not option.tool):
            is_known = self._known(option, value, owner, path)
            if is_open or not is_known:
                self._unread[name] = place
            return {name} if is_known and value is not None else set()
        if isinstance(value, dict) and is_section:
            return self._section_of(name, value, owner, path)
        if name in owner.unmodelled:
            if is_open or (word_of(value) not in _OFF and value not in ([], {})):
                self._reading.unmodelled.append(Remark(place, owner.unmodelled[name]))
        elif owner.ignores(name, is_open or value):
            self._reading.ignored.append(place)
        else:
            close = nearest(written, owner.known, 1)
            self._reading.unknown.append(Remark(place, close[0] if close else ""))
        return set()

    def _section_of(self, name: str, value: dict[str, Plain], owner: Tool, path: KeyPath) -> set[str]:
        """Read a section of a tool; return the names of what was given. What is switched off does nothing."""
        if value.get("enabled") is False:
            self._reading.ignored += [self._document.place(*path, key) for key in value if key != "enabled"]
            value = {"enabled": False}
        before = len(self._reading.settings)
        self.section(value, owner, path, f"{name}.")
        inner = {f"{name}.{setting.place.field}" for setting in self._reading.settings[before:]}
        return inner | _below(name, value)

    def _known(self, option: Option, value: Plain, owner: Tool, path: KeyPath) -> bool:
        """Read an option that the tool has; return whether it has the value too."""
        place = self._document.place(*path)
        source = ImportedSetting("", None, place, shown(value), owner.id)
        if ANY in option.unmodelled:
            self._reading.unmodelled.append(Remark(place, option.unmodelled[ANY]))
        if option.tool:
            self._other_tool(option, value, path, source)
            return True
        read = self._values(option, value, place)
        self._add(read.values, source)
        if read.values:
            self._add(option.sets, replace(source, level="default"))
        return read.is_known

    def _add(self, values: Mapping[str, object], source: ImportedSetting) -> None:
        self._reading.settings += settings_from(values, source)

    def _other_tool(self, option: Option, value: Plain, path: KeyPath, source: ImportedSetting) -> None:
        """Read options of another tool in a section below an option, or note the file that it names."""
        if isinstance(value, dict) and value:
            other = tool(option.tool)
            self._add(option.sets, source)
            self._add(other.sets, source)
            self.section(value, other, path, "")
        elif isinstance(value, str) and value:
            self._add(option.sets, source)
            if option.meaning:  # the name of a configuration tells what it is of; a word alone is of no file
                self._add(self._values(option, value, source.place).values, source)
            if not option.meaning or "/" in value or PurePath(value).suffix:
                self._reading.named.append((Path(value), source.place, option.tool))
        elif value is True:
            self._add(option.sets, source)

    def _values(self, option: Option, value: Plain, place: Place) -> OptionValues:
        """Return what an option sets, and remark on what plans have no word for."""
        read = values_of(option, value, place)
        self._reading.unmodelled += [Remark(place, why) for why in read.remarks]
        return read

    def _defaults(self, owner: Tool, seen: set[str], path: KeyPath) -> None:
        """Add the defaults of a tool for the options that are left out."""
        file = self._document.file
        for name, option in owner.options.items():
            if option.default is NOTHING or name in seen:
                continue
            place, text = self._unread.get(name, Place(file, None, name)), shown(option.default)
            read = self._values(option, option.default, place)  # type: ignore[arg-type]  # plain data
            text = f"not read, {text} by default" if name in self._unread else text
            self._add(read.values, ImportedSetting("", None, place, text, owner.id, "default"))
        self._add(owner.defaults, ImportedSetting("", None, Place(file), "", owner.id, "default"))
        if not path:
            self._add(owner.sets, ImportedSetting("", None, Place(file), "", owner.id))


def _name_of(written: str, owner: Tool) -> str:
    """Return the name of an option of a tool; parsers of commands take the beginning of one name for it."""
    name = owner.named(written)
    if name in owner.known or not written.startswith("--") or len(name) < _SHORTEST:
        return name
    alike = {owner.named(known) for known in owner.known if known.startswith(name)}
    return alike.pop() if len(alike) == 1 else name


def _below(name: str, value: Mapping[str, Plain]) -> set[str]:
    """Return the names of what a section gives, however deep."""
    names: set[str] = set()
    for key, inner in value.items():
        names.add(f"{name}.{key}")
        if isinstance(inner, dict):
            names |= _below(f"{name}.{key}", inner)
    return names
