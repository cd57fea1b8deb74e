"""Files of other tools: which form they have, whose they are, and which further ones they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from types import MappingProxyType

from capacity_tui.engine.catalog import Document, Plain, read_text
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.options import (
    LEAST_KNOWN,
    nearest_tools,
    options_of,
    owner_of,
    read_document,
    tool_of,
)
from capacity_tui.engine.plan.imports.own_scripts import (
    LOADS,
    explain,
    is_unread,
    named_options,
    own_options,
    own_script,
    read_calls,
    started,
    trains_by_name,
)
from capacity_tui.engine.plan.imports.runs import Run, from_shell, join, note_choices, of_training
from capacity_tui.engine.plan.imports.scripts import (
    LAUNCHER,
    OPTIONS_FILE,
    Command,
    Manifest,
    Script,
    is_command,
    is_python,
    machines_asked_for,
    manifest_of,
    names_read,
    options_kept,
    read_script,
    settings_alone,
    slurm_device,
    started_commands,
    tool_commands,
    variables_of,
    variables_set,
)
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Reading, Remark, settings_from
from capacity_tui.engine.plan.imports.texts import (
    code_of_notebook,
    located,
    module_text,
    options_alongside,
    other_script,
    read_kept,
    read_text_of_tool,
)
from capacity_tui.engine.plan.options.tools import Tool, tool

_MOST_FILES = 64  # Files of a folder that are looked at

_SHELL_SCRIPTS = frozenset({".sh", ".bash", ".slurm", ".sbatch"})

_STARTS_NOTHING = frozenset({LAUNCHER, "benchmark_serving", "bench_serving"})  # Launchers, and loads of other servers
_DEEPSPEED = "deepspeed"  # The tool whose files are known by names that others gave them

_FEWEST_OPTIONS = 2  # Options by which a section of several is known for one of a tool

_PROCESSES = "WORLD_SIZE"  # The variable in which torchrun and its like give a script their number

_IS_MODEL = frozenset({"architectures", "model_type"})  # Keys of a config.json

_PICKLED = ("training_args.bin",)


def read_files(names: Sequence[str], devices: object = None) -> list[Reading]:
    """Return what files, and folders of files, of other tools say on some devices, where these are known.

    Raises:
        CapacityError: one cannot be read.
    """
    readings: list[Reading] = []
    environment = {} if devices is None else {_PROCESSES: str(devices)}
    for name in names:
        path = typed_path(name)
        if path.is_dir():
            if not (in_folder := [*_in_folder(path)]):
                raise PlanError("no file of a known tool", hint=nearest_tools(), place=Place(name))
            readings += in_folder
            continue
        if path.name in _PICKLED:
            hint = "write args.to_json_string() into a file, and name that"
            raise PlanError("pickled, which is not read", hint=hint, place=Place(name))
        readings += _read_text(read_text(path), name, environment)
    everything = _with_named(readings)
    explain(everything)
    return everything


def _in_folder(folder: Path) -> Iterator[Reading]:
    """Yield what the files of a folder say, without those of no known tool and those that another one starts."""
    read: dict[Path, list[Reading]] = {}
    for path in sorted(file for file in folder.iterdir() if file.is_file())[:_MOST_FILES]:
        with suppress(CapacityError):
            read[path] = _read_text(read_text(path), str(path))
    for path, readings in read.items():
        started = set().union(*(one.started for one in readings))  # jobs that submit each other are all read
        others = (one for other in read if other is not path and other not in started for one in read[other])
        if not any(path in (Path(one.file), *one.started) for one in others):
            yield from readings


def _with_named(readings: list[Reading]) -> list[Reading]:
    """Return readings with those of the files that they name; one that is not there is remarked on."""
    everything = list(readings)
    given = {Path(reading.file).resolve() for reading in readings}
    written = {name: (reading.file, text) for reading in readings for name, text in reading.written.items()}
    for reading in everything:  # which grows: a file that one names may name others
        for named, place, owner in reading.named:
            path = located(named, Path(reading.file).parent, given)
            if path is None and named.name in written:
                file, text = written.pop(named.name)
                everything += _read_named(text, file, owner)
            elif path is None:
                source = ImportedSetting("", None, place, named.name, _DEEPSPEED)
                by_name = [
                    one
                    for values in tool(_DEEPSPEED).started_values(named.name)
                    for one in settings_from(values, source)
                ]
                reading.settings += by_name
                read = ", read by its name alone" if by_name else ""
                if not (by_name and named.name == str(named) and not named.suffix):  # one that comes with the tool
                    reading.unmodelled.append(Remark(place, f"{named} is not there{read}: give it too"))
            elif path.resolve() not in given:
                given.add(path.resolve())
                everything += _read_named(read_text(path), str(path), owner)
    return everything


def _read_named(text: str, name: str, owner: str) -> list[Reading]:
    """Return what a file says that is named as one of a tool, which it is even if it holds too little to tell."""
    with suppress(PlanError):
        return _read_text(text, name, owner=owner)
    return [read_document(read_text_of_tool(text, name), tool(owner))]


def _read_text(
    text: str, name: str, environment: Mapping[str, str] = MappingProxyType({}), owner: str = ""
) -> list[Reading]:
    """Return what a text says, a command or a document, which may be named as one of a tool."""
    if not is_python(text) and is_python(plain := code_of_notebook(text)):
        text = plain
    if is_command(text) or Path(name).suffix in _SHELL_SCRIPTS:
        readings = _read_commands(text, name, devices=environment.get(_PROCESSES, ""))
    elif not is_python(text) and (alone := settings_alone(text, name)) is not None:
        readings = _readings(alone.document)
    elif not is_python(text) and (manifest := manifest_of(text, name)) is not None:
        readings = _read_manifest(manifest, name)
    else:
        is_script = is_python(text)
        document = None if is_script else read_text_of_tool(text, name)
        readings = _read_python(text, name, environment) if document is None else _readings(document, owner)
    readings[0].settings += read_kept(text, name)
    return readings


def _read_python(text: str, name: str, environment: Mapping[str, str]) -> list[Reading]:
    """Return what the calls of a Python script say, else the commands that it starts, and the machines it asks for."""
    module, options = partial(module_text, Path(name)), partial(options_alongside, Path(name))
    machines = [read_document(*asked) for asked in machines_asked_for(text, name, module, options)]
    try:
        readings = read_calls(text, name, environment)
    except PlanError:
        if not (commands := started_commands(text, module, options)):
            raise
        readings = _read_commands(commands, name)
    return [*readings, *machines]


def _read_commands(
    text: str, name: str, texts: Mapping[str, str] = MappingProxyType({}), devices: str = ""
) -> list[Reading]:
    """Return what the commands of a script say; ``texts`` are other files that stand in the same one, by name."""
    started: set[Path] = set()
    other = partial(other_script, Path(name), started)
    script = read_script(text, other, devices=devices)
    runs, launcher = _runs_of(script, name, texts)
    if not runs:
        whole = read_script(text, other, everything=True, devices=devices)
        is_more = len(whole.commands) > len(script.commands)
        further, launchers = _runs_of(whole, name, texts) if is_more else ([], [])
        if any(run.names_model for run in further):
            script, runs, launcher = whole, further, launchers
    manifests = (manifest_of("\n" * (file.line - 1) + file.text, name) for file in (() if runs else script.files))
    if (manifest := next(filter(None, manifests), None)) is not None:
        return _read_manifest(manifest, name)
    if not runs and (owner := tool_of((kept := options_kept(script, name)).document.data)) is not None:
        reading = read_document(kept.document, owner)
        if any("." in setting.field and setting.place.field for setting in reading.settings if setting.level == "said"):
            join(runs, Run(reading, "", False))
    readings = [*(one for run in of_training(runs) for one in run.readings), *launcher]
    note_choices(readings, script, text.splitlines())
    readings += _read_written(script, readings, name)
    if readings:
        readings[0].written = {Path(file.name).name: file.text for file in script.files}
        readings[0].started = started
    if (device := slurm_device(text)) is not None and readings:
        place = Place(name, device[1], "gres")
        readings[0].settings.append(ImportedSetting("device", device[0], place, device[0], LAUNCHER))
    if all(reading.tool.id in _STARTS_NOTHING for reading in readings):
        near = nearest_tools(command.document.data for command in tool_commands(script, name))
        raise PlanError("no command of a known tool", hint=near, place=Place(name))
    return readings


def _runs_of(script: Script, name: str, texts: Mapping[str, str]) -> tuple[list[Run], list[Reading]]:
    """Return the runs that the commands of a script start, and what launchers say that start no program."""
    runs: list[Run] = []
    launcher: list[Reading] = []
    texts = {**texts, **{Path(file.name).name: file.text for file in script.files}}
    broken: list[PlanError] = []
    for command in tool_commands(script, name):
        owner = owner_of(command)
        if owner is not None and owner.id == LAUNCHER:
            launcher.append(read_document(command.document, owner))
            continue
        run = None
        try:
            run = _run_of(command, owner, tuple(launcher), name, texts)
        except PlanError as error:
            broken.append(error)
        if run is not None:
            join(runs, run)
        launcher = [] if run is not None or command.script else launcher  # of a program that is not read
    if broken and not runs:
        raise broken[0]
    for fault in broken:
        why = f"{fault.title} {fault.detail}: this command is not read"
        runs[0].reading.unmodelled.append(Remark(fault.place, why))
    return runs, launcher


def _read_manifest(manifest: Manifest, name: str) -> list[Reading]:
    """Return what the programs say that a file runs on machines, and on what."""
    readings = _read_commands(manifest.script, name, manifest.files)
    serves = any(reading.tool.sets.get(Key.TASK) == "infer" for reading in readings)
    readings[0].settings += manifest.settings(serves=serves)
    readings[0].unmodelled += manifest.remarks()
    readings[0].started = {*readings[0].started, *manifest.built}
    return readings


def _run_of(
    command: Command, owner: Tool | None, launchers: tuple[Reading, ...], name: str, texts: Mapping[str, str]
) -> Run | None:
    """Return what a command says, and the Python script that it runs; None where neither is of a known tool."""
    is_own = owner is None or owner is not command.owner
    command = replace(command, environment={**dict(_processes(launchers)), **command.environment})
    text, called = own_script(command, name, texts) if is_own else ("", [])
    if owner is None and all(one.tool.id in LOADS for one in called):
        text, called = "", []  # a script that only loads a model does nothing with it that a plan has words for
    if called and owner is not None and not owner.calls:
        owner = None  # options of a script that calls other tools are its own, whatever else takes such ones
    if is_own:
        called += _own_configuration(command, name, texts)
    place = Place(name, next(iter(command.document.lines.values()), None))
    named = named_options(command, (*launchers, *called))
    if owner is None and not called and command.script and trains_by_name(command, named):
        called = [Reading(name, named.tool, [one for one in named.settings if one.level == "default"])]
    if owner is None and called:
        called[-1].settings += [setting for setting in named.settings if setting.level == "said"]
        own = own_options(command, text, {Path(one.file).name for one in called}, named)
        called[-1].unmodelled += [*named.unmodelled, *own]
        environment = {**command.environment, **(variables_set(text) if text else {})}
        called[-1].settings += from_shell(environment, (*launchers, *called), place)
        return Run(called[-1], command.program, False, launchers, tuple(called[:-1]))
    if owner is None:
        return None
    reading = started(read_document(command.options_of(owner), owner), command.started)
    is_foreign = is_own and not text and command.program and not command.names_script
    if is_foreign and owner.sets.get(Key.TASK) != "infer":
        why = f"no program that is known: its options are read as those of {owner.short_name}, whose defaults count"
        reading.unmodelled.append(Remark(replace(place, field=command.program), why))
    serves = command.serves(owner)
    if serves:
        reading.settings.append(ImportedSetting(Key.TASK, "infer", Place(name), command.program, owner.id))
    reading.settings += from_shell(command.environment, (*launchers, reading), place)
    # An option of its own is read where the script hands it on, and goes before a file of options.
    given = {setting.field for setting in reading.settings if setting.level == "said"}
    for one in called:
        one.settings = [setting for setting in one.settings if setting.field not in given]
    read = names_read(text) if called else frozenset()
    reading.unknown = [one for one in reading.unknown if not called or is_unread(one.place.field or "", text, read)]
    return Run(reading, command.program, serves, launchers, tuple(called))


def _processes(launchers: Sequence[Reading]) -> Iterator[tuple[str, str]]:
    """Yield the variable in which a script has the processes that launchers say, which start it."""
    given = {one.field: one.value for reading in launchers for one in reading.settings if one.level == "said"}
    whole, on_node, nodes = (given.get(name) for name in ("processes", "per_process", "nodes"))
    if not isinstance(whole, int) and isinstance(on_node, int):
        whole = on_node * (nodes if isinstance(nodes, int) else 1)
    if isinstance(whole, int):
        yield _PROCESSES, str(whole)


def _own_configuration(command: Command, name: str, texts: Mapping[str, str]) -> Iterator[Reading]:
    """Yield what a file of options says that a program of no known tool is given, where it is of a known one."""
    data = command.document.data if isinstance(command.document.data, dict) else {}
    for key, value in data.items():
        if isinstance(value, str) and OPTIONS_FILE.search(value):
            path = located(Path(value), Path(name).parent, set())
            with suppress(CapacityError):
                written = texts.get(Path(value).name, "") if key == "config" else ""
                text = written if path is None else read_text(path)
                document = read_text_of_tool(text, str(path or value))
                yield from _readings(document) if tool_of(document.data) is not None else ()


def _read_written(script: Script, readings: Sequence[Reading], name: str) -> list[Reading]:
    """Return what the files say that a script writes and then hands to a program."""
    written = {file.name: file for file in script.files}
    further: list[Reading] = []
    for reading in readings:
        for named, _, owner in reading.named:
            file = next((written.pop(known) for known in list(written) if Path(known) == named), None)
            if file is not None:
                document = read_text_of_tool(file.text, name)
                lines = {path: line + file.line - 1 for path, line in document.lines.items()}
                further += _readings(replace(document, lines=lines), owner)
        there = {Path(file.name) for file in script.files}
        reading.named = [entry for entry in reading.named if entry[0] not in there]
    return further


def _readings(document: Document, named: str = "") -> list[Reading]:
    """Return what a document says, or what sections of it say where it holds the options of several tools.

    One that is named as that of a tool needs no sign of it.
    """
    if (owner := tool_of(document.data, named)) is not None:
        reading = read_document(document, owner)
        return [reading, *_run_by(reading, document)]
    data = document.data if isinstance(document.data, dict) else {}
    parts = [part[0] if isinstance(part, list) and part else part for part in data.values()]  # of several the first
    flat = {key: value for section in parts if isinstance(section, dict) for key, value in section.items()}
    if (owner := tool_of(flat)) is not None and owner.is_flat:
        lines = {path[-1:]: line for path, line in document.lines.items()}
        return [read_document(replace(document, data=flat, lines=lines), owner)]
    off = [key for key, value in data.items() if isinstance(value, dict) and value.get("enabled") is False]
    data = {key: value for key, value in data.items() if key not in off}
    sections = [
        (key, owner) for key, value in data.items() if (owner := tool_of(value)) is not None and _tells(value, owner)
    ]
    known = sum(len(list(options_of({key: data[key]}))) for key, _ in sections)
    if _IS_MODEL & data.keys():
        hint = "plan it by --model, with --gpu and --seq"
        raise PlanError("the configuration of a model: it says nothing of a run", hint=hint, place=Place(document.file))
    if known * LEAST_KNOWN < len(list(options_of(data))) or not sections:
        what = "empty" if document.data in (None, {}) else "of no known tool"
        raise PlanError(what, hint=nearest_tools([document.data]), place=Place(document.file))
    read = [read_document(document, owner, (key,)) for key, owner in sections]
    others = [key for key in data if key not in dict(sections)]
    read[0].unknown.extend(Remark(Place(document.file, document.lines.get((key,)), str(key)), "") for key in others)
    return read


def _tells(section: Plain, owner: Tool) -> bool:
    """Whether a section has more options of a tool than one that others may have too."""
    options = list(options_of(section)) if isinstance(section, dict) else []
    return len(options) < _FEWEST_OPTIONS or sum(map(owner.knows_option, options)) >= _FEWEST_OPTIONS


def _run_by(reading: Reading, document: Document) -> list[Reading]:
    """Return what the commands say that a document holds for a shell, its variables and the document's filled in."""
    owner, data = reading.tool, document.data if isinstance(document.data, dict) else {}
    values = {setting.field: setting.value for setting in reading.settings}
    lines = [f"{name}={values[field]}" for name, field in owner.variables.items() if field in values]
    lines += [
        f"export {name}={quote(text)}" for option in owner.environment for name, text in variables_of(data.get(option))
    ]
    for option in owner.runs:
        value = data.get(option)
        lines += [str(line) for line in (value if isinstance(value, list) else [value]) if line]
    if not owner.runs:
        return []
    with suppress(CapacityError):
        return _read_commands("\n".join(lines), document.file or "")
    return []
