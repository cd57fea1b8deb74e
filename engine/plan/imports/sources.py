"""Files of other tools: which form they have, whose they are, and which further ones they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote

from capacity_tui.engine.catalog import Document, KeyPath, Plain, read_text
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.edit import leaves
from capacity_tui.engine.plan.field_table import all_fields
from capacity_tui.engine.plan.files.loading import OLDER_KEYS, names_model
from capacity_tui.engine.plan.imports.options import read_document
from capacity_tui.engine.plan.imports.scripts import (
    LAUNCHER,
    Command,
    Script,
    assignments,
    calls,
    is_command,
    is_python,
    manifest_of,
    options_kept,
    read_script,
    settings_alone,
    tool_commands,
    variables_of,
)
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Reading, Remark, settings_from
from capacity_tui.engine.plan.imports.texts import read_kept, read_text_of_tool
from capacity_tui.engine.plan.imports.tools import RECIPE, Tool, option_name, tool, tools
from capacity_tui.engine.record import dataclass

_OLDER = frozenset(".".join(path) for path in OLDER_KEYS)

_MOST_FILES = 64  # Files of a folder that are looked at

_FARTHEST_FOLDER = 3  # Folders above a file in which what it names is looked for

_LEAST_KNOWN = 2  # A file is a tool's of which it knows one option in so many

_FEWEST_TELLING = 2  # Options by which a program that is none of a tool's is known for one

_SHELL_SCRIPTS = frozenset({".sh", ".bash", ".slurm", ".sbatch"})

_DEEPSPEED = "deepspeed"  # The tool whose files are known by names that others gave them

_PICKLED = ("training_args.bin",)


def read_files(names: Sequence[str]) -> list[Reading]:
    """Return what files and folders of other tools say.

    Args:
        names: files, or folders of them.

    Raises:
        CapacityError: one cannot be read, or is of no known tool.
    """
    readings: list[Reading] = []
    for name in names:
        path = typed_path(name)
        if path.is_dir():
            in_folder = list(_in_folder(path))
            if not in_folder:
                raise PlanError("no file of a known tool", hint=f"known: {known_tools()}", place=Place(name))
            readings += in_folder
            continue
        if path.name in _PICKLED:
            hint = "write args.to_json_string() into a file, and name that"
            raise PlanError("pickled, which is not read", hint=hint, place=Place(name))
        readings += _read_text(read_text(path), name)
    return _with_named(readings)


def known_tools() -> str:
    """Return the tools whose files are read, in words."""
    return ", ".join(dict.fromkeys(known.short_name for known in tools().values() if known.signs))


def _in_folder(folder: Path) -> Iterator[Reading]:
    """Yield what the files of a folder say; those of no known tool are left out."""
    for path in sorted(file for file in folder.iterdir() if file.is_file())[:_MOST_FILES]:
        with suppress(CapacityError):
            yield from _read_text(read_text(path), str(path))


def _with_named(readings: list[Reading]) -> list[Reading]:
    """Return readings with those of the files that they name; one that is not there is remarked on."""
    everything = list(readings)
    given = {Path(reading.file).resolve() for reading in readings}
    for reading in readings:
        for named, place in reading.named:
            path = _located(named, Path(reading.file).parent, given)
            if path is None:
                source = ImportedSetting("", None, place, named.name, _DEEPSPEED)
                by_name = [
                    one
                    for values in tool(_DEEPSPEED).started_values(named.name)
                    for one in settings_from(values, source)
                ]
                reading.settings += by_name
                read = ", read by its name alone" if by_name else ""
                reading.unmodelled.append(Remark(place, f"{named} is not there{read}: give it too"))
            elif path.resolve() not in given:
                given.add(path.resolve())
                everything += _read_text(read_text(path), str(path))
    return everything


def _located(named: Path, folder: Path, given: set[Path]) -> Path | None:
    """Return where a file that another names lies: beside it, or where a run that starts above it finds it."""
    try:
        for base in (folder, *list(folder.resolve().parents)[:_FARTHEST_FOLDER]):
            for tried in (base / named, base / named.name):
                if tried.is_file():
                    return tried
    except (OSError, ValueError):
        return None
    return next((path for path in given if path.name == named.name), None)


def _read_text(text: str, name: str) -> list[Reading]:
    """Return what a text says, a command or a document.

    Raises:
        CapacityError: it is none, or of no known tool.
    """
    if is_command(text) or Path(name).suffix in _SHELL_SCRIPTS:
        readings = _read_commands(text, name)
    elif not is_python(text) and (alone := settings_alone(text, name)) is not None:
        readings = _readings(alone)
    elif not is_python(text) and (manifest := manifest_of(text, name)) is not None:
        readings = _read_commands(manifest.script, name)
        serves = any(reading.tool.sets.get(Key.TASK) == "infer" for reading in readings)
        readings[0].settings += manifest.settings(serves=serves)
    else:
        readings = _read_calls(text, name) if is_python(text) else _readings(read_text_of_tool(text, name))
    readings[0].settings += read_kept(text, name)
    return readings


def _read_calls(text: str, name: str) -> list[Reading]:
    """Return what the calls of a Python script say.

    Raises:
        PlanError: it calls nothing of a known tool.
    """
    readings = []
    for document, owner, called in calls(text, name):
        readings.append(_started(read_document(document, owner), called))
    for given, made in assignments(text, name):
        starter = next((one for one in tools().values() if any(one.started_values(made))), tool_of(given.data))
        options = given.data if isinstance(given.data, dict) else {}
        is_recipe = starter is not None and starter.names_recipe(made)
        document = replace(given, data={**options, RECIPE: made}) if is_recipe else given
        if starter is not None and not any(reading.tool is starter for reading in readings):
            readings.append(_started(read_document(document, starter), made))
    if not readings:
        raise PlanError("no call of a known tool", hint=f"known: {known_tools()}", place=Place(name))
    return readings


def _started(reading: Reading, called: str) -> Reading:
    """Return a reading with what a program or a function says by being called: options of the file go before it."""
    source = ImportedSetting("", None, Place(reading.file), called, reading.tool.id, "default")
    started = [one for values in reading.tool.started_values(called) for one in settings_from(values, source)]
    reading.settings[:0] = started
    return reading


def _read_commands(text: str, name: str) -> list[Reading]:
    """Return what the commands of a script say.

    Raises:
        CapacityError: it cannot be read, or starts no known tool.
    """
    script = read_script(text, partial(_other_script, Path(name)))
    runs: list[_Run] = []
    launcher: list[Reading] = []
    for command in tool_commands(script, name):
        owner = command.owner or tool_of(command.document.data)
        if command.owner is None and command.program and not _is_telling(command):
            owner = None
        own = _own_script(command, name) if command.owner is None else []
        if owner is None and not own:
            continue
        reading = own.pop(0) if owner is None else read_document(command.document, owner)
        if owner is None:
            _join(runs, _Run(reading, command.program, False, tuple(launcher), tuple(own)))
            launcher = []
            continue
        if owner.id == LAUNCHER:
            launcher.append(reading)
            continue
        _started(reading, command.started)
        serves = command.serves(owner)
        if serves:
            reading.settings.append(ImportedSetting(Key.TASK, "infer", Place(name), command.program, owner.id))
        _join(runs, _Run(reading, command.program, serves, tuple(launcher), tuple(own)))
        launcher = []
    if not runs and (owner := tool_of((kept := options_kept(script, name)).document.data)) is not None:
        _join(runs, _Run(read_document(kept.document, owner), "", False))
    readings = [*(one for run in runs for one in run.readings), *launcher]
    readings += _read_written(script, readings, name)
    if all(reading.tool.id == LAUNCHER for reading in readings):
        raise PlanError("no command of a known tool", hint=f"known: {known_tools()}", place=Place(name))
    return readings


def _own_script(command: Command, name: str) -> list[Reading]:
    """Return what the Python script calls that a command runs, where it lies beside: with options for its arguments."""
    path = _located(Path(command.script), Path(name).parent, set()) if command.script else None
    text = read_text(path) if path is not None else ""
    if not is_python(text):
        return []
    options = command.document.data if isinstance(command.document.data, dict) else {}
    given = {option_name(key): value for key, value in options.items()}
    return [_started(read_document(document, owner), called) for document, owner, called in calls(text, str(path), given)]


def _is_telling(command: Command) -> bool:
    """Whether a program of no known tool has options enough to tell one: ``ulimit -c 0`` has not."""
    return isinstance(command.document.data, dict) and len(command.document.data) >= _FEWEST_TELLING


@dataclass(frozen=True, slots=True)
class _Run:
    """A command of a tool, and the launchers before it."""

    reading: Reading
    program: str  # the words before its options
    serves: bool  # whether that generates or evaluates
    launchers: tuple[Reading, ...] = ()
    called: tuple[Reading, ...] = ()  # what the script calls that is its program

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Everything that is read of it; what a script calls goes before its options."""
        return (*self.launchers, *self.called, self.reading)

    def is_joined_to(self, other: _Run) -> bool:
        """Whether two commands of a tool are of one run, as one that builds an engine and one that serves it."""
        names, others = _models(self.reading), _models(other.reading)
        is_other_model = bool(names and others) and names != others
        started = self.reading.tool.started(self.program)
        return not is_other_model and started != other.reading.tool.started(other.program)


def _join(runs: list[_Run], run: _Run) -> None:
    """Add a command to those of a script; of several runs of one tool the first that trains counts."""
    at = next((index for index, before in enumerate(runs) if before.reading.tool is run.reading.tool), None)
    if at is None:
        runs.append(run)
        return
    first = runs[at]
    if run.serves == first.serves and run.is_joined_to(first):
        runs.append(run)
        return
    if first.serves and not run.serves:
        runs[at], run = run, first
    values, others = (
        [(one.field, one.value) for one in side.reading.settings if one.level == "said"] for side in (runs[at], run)
    )
    if values != others:
        of_model = f", of another model ({', '.join(_models(run.reading))})" if _models(run.reading) else ""
        why = f"a second command{of_model}: give it in a file of its own"
        runs[at].reading.unmodelled.append(Remark(Place(run.reading.file, field=run.program), why))


def _other_script(script: Path, name: str) -> str | None:
    """Return the text of a script that another one names; folders that only a shell knows count as that one's."""
    parts = name.split("/")
    for first in range(len(parts)):
        path = script.parent.joinpath(*parts[first:])
        with suppress(CapacityError, OSError, ValueError):
            if path.is_file() and path.resolve() != script.resolve():
                return read_text(path)
    return None


def _models(reading: Reading) -> list[str]:
    """Return the models that a command names."""
    return [str(setting.value) for setting in reading.settings if setting.field in ("model", "model_file")]


def _read_written(script: Script, readings: Sequence[Reading], name: str) -> list[Reading]:
    """Return what the files say that a script writes and then hands to a program."""
    written = {file.name: file for file in script.files}
    further: list[Reading] = []
    for reading in readings:
        for named, _ in reading.named:
            file = next((written.pop(known) for known in list(written) if Path(known) == named), None)
            if file is not None:
                document = read_text_of_tool(file.text, name)
                lines = {path: line + file.line - 1 for path, line in document.lines.items()}
                further += _readings(replace(document, lines=lines))
        there = {Path(file.name) for file in script.files}
        reading.named = [entry for entry in reading.named if entry[0] not in there]
    return further


def _readings(document: Document) -> list[Reading]:
    """Return what a document says, or what sections of it say where it holds the options of several tools.

    Raises:
        PlanError: it is of no known tool.
    """
    if (owner := tool_of(document.data)) is not None:
        reading = read_document(document, owner)
        return [reading, *_run_by(reading, document)]
    data = document.data if isinstance(document.data, dict) else {}
    sections = [(key, section_owner) for key, value in data.items() if (section_owner := tool_of(value)) is not None]
    known = sum(len(list(_options({key: data[key]}))) for key, _ in sections)
    if known * _LEAST_KNOWN < len(list(_options(data))) or not sections:
        what = "empty" if document.data in (None, {}) else "of no known tool"
        raise PlanError(what, hint=f"known: {known_tools()}", place=Place(document.file))
    read = [read_document(document, owner, (key,)) for key, owner in sections]
    others = [key for key in data if key not in dict(sections)]
    read[0].unknown.extend(Remark(Place(document.file, document.lines.get((key,)), str(key)), "") for key in others)
    return read


def _run_by(reading: Reading, document: Document) -> list[Reading]:
    """Return what the commands say that a document holds for a shell, its variables and the document's filled in."""
    owner, data = reading.tool, document.data if isinstance(document.data, dict) else {}
    values = {setting.field: setting.value for setting in reading.settings}
    lines = [f"{name}={values[field]}" for name, field in owner.variables.items() if field in values]
    lines += [f"{name}={quote(text)}" for option in owner.environment for name, text in variables_of(data.get(option))]
    for option in owner.runs:
        value = data.get(option)
        lines += [str(line) for line in (value if isinstance(value, list) else [value]) if line]
    if not owner.runs:
        return []
    with suppress(CapacityError):
        return _read_commands("\n".join(lines), document.file or "")
    return []


def tool_of(data: Plain) -> Tool | None:
    """Return the tool that knows most options of some data, and has a sign among them; None where none has.

    Options count one by one, those in sections too: a section that is called as one of a tool is not yet the tool's.
    """
    if not isinstance(data, dict):
        return None
    options = list(_options(data))
    scored = [
        (sum(candidate.knows_option(path) for path in options), candidate)
        for candidate in tools().values()
        if any(candidate.is_signed(path) for path in options)
    ]
    best = max((score for score, _ in scored), default=0)
    known = best * _LEAST_KNOWN >= len(options)
    return next((candidate for score, candidate in scored if score == best and known), None)


def _options(data: Mapping[str, Plain], above: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the paths of the options in some data."""
    for key, value in data.items():
        path = (*above, str(key))
        if isinstance(value, dict) and value:
            yield from _options(value, path)
        else:
            yield path


def refuse_files_of_tools(document: Document) -> None:
    """Make sure that a document that is to be a plan is not a configuration of another tool.

    Raises:
        PlanError: it is one.
    """
    if not is_of_tool(document):
        return

    tool, file_place = tool_of(document.data), Place(document.file)
    if tool is None:
        hint = f"known: {known_tools()}; or write model: {{name: ...}} and hardware: {{name: ...}}"
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
