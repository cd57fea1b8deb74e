"""What Python scripts say that are one's own: the calls in them, and options that a command starts them with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from capacity_tui.engine.catalog import Document, KeyPath, Plain, read_text
from capacity_tui.engine.errors import CapacityError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan.imports.batches import OF_LOOPS
from capacity_tui.engine.plan.imports.options import nearest_tools, read_document, tool_of
from capacity_tui.engine.plan.imports.runs import first_calls, from_shell
from capacity_tui.engine.plan.imports.scripts import (
    OPTIONS_FILE,
    Command,
    FurtherOptions,
    assignments,
    calls,
    is_python,
    modules_used,
    names_read,
    own_values,
    settings_alone,
    variables_set,
)
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Reading, Remark, settings_from
from capacity_tui.engine.plan.imports.texts import located, module_file, module_text, options_alongside
from capacity_tui.engine.plan.options.tools import RECIPE, bears_on_a_run, option_name, tool, tools

_GENERATES = re.compile(r"\.generate\(|\bpipeline\(")  # What scripts call that load a model to answer

_RUNS = re.compile(rf"{_GENERATES.pattern}|\bbackward\(|\btrain\w*\(|Trainer|\.fit\(|optimizer|Accelerator")
"""What scripts call or name that do anything with a model."""

_FREEZES = re.compile(r"^(?!.*(?:ref|teacher)).*requires_grad(?:\s*=\s*False|_\(False\))", re.MULTILINE)
"""What scripts set that train parts of a model."""

_WIDENS = re.compile(r"\.float\(\)|\.to\((?:dtype=)?torch\.float(?:32)?\)")  # What makes a model one of 32 bits

_TRAINS_ITSELF = re.compile(r"Trainer\(|TrainingArguments\(|\bbackward\(")
"""What a script calls that trains, or sets how."""

_CONVERTS = "what converts or saves weights has no plan"

_LOADING = "loading"  # The tool that loads models in Python
_EMBEDS = "embeds"  # What it says of one whose outputs are vectors
_TYPE = "loaded_in"  # What it says of the type of one
_ADAPTS = frozenset({"peft", "adapting"})  # What puts adapters on one
_TOKENIZING = "tokenizing"  # What cuts texts, which alone is nothing of a run
_TRAINERS = "trainers"  # What trains in Python
_LOOP = "pytorch"  # What says how a loop of a script's own trains, which no trainer takes
_TRAINER = "trainer"  # What trains there and has no option for how long its sequences are
_CASTS = re.compile(r"autocast\(|\.half\(|\bamp\.|mixed_precision|(?<!dtype=torch\.)(?<!dtype=torch\.b)float16")
"""What computes in a shorter type than that of the model."""
_LOSS = re.compile(r"log_softmax\(|cross_entropy\(")  # What a script takes its loss by itself of whole logits
_LEARNS = re.compile(
    r"\bbackward\(|optimizer\.step\(|\.(?:old_)?fit\("
)  # What such a loop calls, or what takes its batches
_JOB = "sagemaker_training"  # What runs a script on machines, likewise
_SPREADS = "fsdp"  # What spreads a model, which alone is nothing of a run
_AROUND = frozenset({_LOOP, _SPREADS, "sentence_transformers", "deepspeed_engine", "unsloth"})
"""What takes them, loads for them, or spreads them."""
_OF_TRAINERS = frozenset({_TRAINERS, _TRAINER, "trl"})
_SPLITS = frozenset({Key.PARALLELISM_TP, Key.PARALLELISM_PP})
_OF_OPTIONS = (".yaml", ".yml")  # How a value ends that is a file of options
LOADS = frozenset({_LOADING, "bitsandbytes", "recomputing", "compiling", _TOKENIZING})
"""What scripts call that only load a model, or change it for another that trains it."""

_ADAPTED = frozenset({Key.TRAINING_METHOD, "adapted_in_code"})  # What says whether adapters are trained
_TRAINS = frozenset({Key.TRAINING_MICRO_BATCH, "accumulation", Key.TRAINING_EPOCHS, Key.TRAINING_STEPS})
"""What options of a script set that trains; two of them tell one that is not read, or one beside adapters."""
_BATCH = re.compile(r"batch|accum")  # In the name of an option that says how much is trained on at once
_ENGINE, _SAMPLING, _SAMPLED = "vllm", "vllm_sampling", "SamplingParams"  # An engine, and what says how it answers
_UNSAMPLED = re.compile(r"(?is)(?!.*sampling_?params).*\bLLM\(.*\.(?:generate|chat)\(.*")  # A script that does not say
_OWN_OPTIONS = "own_options"  # The tool that has names people give to options of their scripts


def read_calls(text: str, name: str, environment: Mapping[str, str]) -> list[Reading]:
    """Return what the calls of a Python script say; raises PlanError where it calls nothing of a known tool.

    Args:
        environment: the variables of the shell that starts it.
    """
    script = Path(name)
    text, readings = _calls_in(text, script, {}, environment)
    for given, made in assignments(text, name):
        function = made.rpartition(".")[2]  # llama3_8b.pretrain_recipe of NeMo is no llama3_8b
        starter = next((one for one in tools().values() if any(one.started_values(function))), tool_of(given.data))
        options = given.data if isinstance(given.data, dict) else {}
        is_recipe = starter is not None and starter.names_recipe(made)
        document = replace(given, data={**options, RECIPE: made}) if is_recipe else given
        first = next((reading for reading in readings if reading.tool is starter), None)
        if starter is not None and first is None:
            readings.append(started(read_document(document, starter), made))
        elif first is not None and starter is not None and any(starter.started_values(made)):
            why = "makes a further configuration: the first counts"
            first.unmodelled.append(Remark(Place(name, field=made), why))
    if not readings and (settings := _settings_of_tool(text, name)) is not None:
        return [settings]
    _loaded_alike(text, readings)
    _read_by_name(text, script, {}, environment, readings)
    if any(reading.tool.id == _ENGINE for reading in readings) and _UNSAMPLED.fullmatch(text):
        readings.append(started(Reading(name, tool(_SAMPLING)), _SAMPLED))
    readings = list(first_calls(_without_loops(readings, text)))
    if readings:
        readings[0].settings += from_shell(variables_set(text), readings, Place(name))
    if readings and all(reading.tool.id in LOADS for reading in readings) and _GENERATES.search(text):
        readings[0].settings.append(ImportedSetting(Key.TASK, "infer", Place(name), "generate", _LOADING))
    _frozen(text, readings)
    if {reading.tool.id for reading in readings} <= {_TOKENIZING, _LOOP, _SPREADS, _JOB}:
        raise PlanError("no call of a known tool", hint=nearest_tools(), place=Place(name))
    called_tools = {reading.tool.id for reading in readings}
    loads = called_tools <= LOADS or (_LOADING in called_tools and called_tools <= LOADS | _ADAPTS)
    if loads and not _RUNS.search(text):
        raise PlanError("it loads a model, and neither trains nor answers", hint=_CONVERTS, place=Place(name))
    return readings


def _without_loops(readings: Sequence[Reading], text: str) -> list[Reading]:
    """Leave out what batches and optimizers of a script's own say where a trainer says it, or nothing learns."""
    others = {reading.tool.id for reading in readings} - _AROUND
    counts = others <= LOADS | _ADAPTS and _LEARNS.search(text) is not None
    loops = [reading for reading in readings if reading.tool.id == _LOOP]
    if not counts:
        return [reading for reading in readings if reading not in loops]
    for loop in loops:
        kept = [one for one in loop.settings if one.field != "precision_alone" or _CASTS.search(text) is None]
        fuses = any(one.field == Key.TRAINING_LOSS for reading in readings for one in reading.settings)
        loop.settings = [*kept, *(_taken_loss(text, loop.file) if fuses else ())]
    return [*readings]


def _taken_loss(text: str, name: str) -> Iterator[ImportedSetting]:
    """Yield how a loop takes its loss where it does so itself: whatever its tools would do, of logits that are held."""
    if (match := _LOSS.search(text)) is not None:
        place = Place(name, text.count("\n", 0, match.start()) + 1, match[0].rstrip("("))
        yield ImportedSetting(Key.TRAINING_LOSS, "standard", place, match[0].rstrip("("), _LOOP)


def _settings_of_tool(text: str, name: str) -> Reading | None:
    """Return what a script that is settings of a tool alone says; names that others are made of are none."""
    if (settings := settings_alone(text, name)) is None or not isinstance(data := settings.document.data, dict):
        return None
    owner = tool_of({key: value for key, value in data.items() if key not in settings.parts})
    if owner is None:
        return None
    own = {key: value for key, value in data.items() if key not in settings.parts or owner.knows_option((key,))}
    return read_document(replace(settings.document, data=own), owner)


def _loaded_alike(text: str, readings: Sequence[Reading]) -> None:
    """Drop the types that a script loads models in where those differ: the one that is trained may be any of them.

    And models that only embed texts, beside others.
    """
    loading = [one for one in readings if one.tool.id == _LOADING]
    embed = [one for one in loading if any(setting.field == _EMBEDS for setting in one.settings)]
    for one in embed if len(embed) < len(loading) else ():
        one.settings = [setting for setting in one.settings if setting.field != "model"]
    heads = [any(setting.field == Key.TRAINING_PREDICTED_TOKENS for setting in one.settings) for one in loading]
    for one in loading if any(heads) and not all(heads) else ():  # one of a few classes scores what another answers
        one.settings = [setting for setting in one.settings if setting.field != Key.TRAINING_PREDICTED_TOKENS]
    types = {next((setting.value for setting in one.settings if setting.field == _TYPE), None) for one in loading}
    if len(types) > 1 or _WIDENS.search(text):
        for one in loading:
            one.settings = [setting for setting in one.settings if setting.field != _TYPE]


def _frozen(text: str, readings: Sequence[Reading]) -> None:
    """Remark on a script that trains parts of a model, where those are no adapters."""
    fields = {setting.field for one in readings for setting in one.settings}
    match = _FREEZES.search(text)
    if match is not None and readings and not _ADAPTED & fields:
        place = Place(readings[0].file, text.count("\n", 0, match.end()) + 1, "requires_grad")
        readings[0].unmodelled.append(Remark(place, "parts of the model that are not trained: counted as trained"))


def explain(readings: Sequence[Reading]) -> None:
    """Drop the remarks on what a trainer is given where calls that make it are read, or options of TRL.

    So it is of the type that a model is loaded in where the trainer is given one.
    """
    settings = [setting for one in readings for setting in one.settings]
    fields = {one.field for one in settings}
    given = {one.field for one in settings if one.level == "said"}
    of_options = any("use_peft" in one.tool.known and not one.file.endswith(".py") for one in readings)
    is_read = {
        "args": Key.TRAINING_MICRO_BATCH in fields,
        "peft_config": of_options or bool(_ADAPTED & fields),
        **dict.fromkeys(("dtype", "torch_dtype"), Key.TRAINING_PRECISION in given),
    }
    for reading in readings:
        reading.unmodelled = [one for one in reading.unmodelled if not is_read.get(one.place.field or "")]
        if reading.tool.id == _TRAINERS and Key.TRAINING_MICRO_BATCH not in fields:
            reading.settings += _defaults_of_trainer(reading)


def _defaults_of_trainer(reading: Reading) -> Iterator[ImportedSetting]:
    """Yield what a trainer does that is given no settings, or some that are not read."""
    of_trl = any(setting.value == "trl" for setting in reading.settings)
    usual = read_document(Document({}, reading.file), tool("trl" if of_trl else "trainer"))
    yield from (setting for setting in usual.settings if setting.level == "default")


def started(reading: Reading, called: str) -> Reading:
    """Return a reading with what a program or a function says by being called: options of the file go before it."""
    source = ImportedSetting("", None, Place(reading.file), called, reading.tool.id, "default")
    begun = [one for values in reading.tool.started_values(called) for one in settings_from(values, source)]
    reading.settings[:0] = begun
    return reading


def own_script(command: Command, name: str, texts: Mapping[str, str]) -> tuple[str, list[Reading]]:
    """Return the Python script that a command runs, and what it calls, with options for its arguments."""
    path = located(Path(command.script), Path(name).parent, set()) if command.script else None
    text = texts.get(Path(command.script).name, "") if path is None else read_text(path)
    path = path or Path(name)
    if not is_python(text):
        return "", []
    options = command.document.data if isinstance(command.document.data, dict) else {}
    switches: dict[str, Plain] = {"True": True, "False": False, "true": True, "false": False}
    given = {
        option_name(key): switches.get(value, value) if isinstance(value, str) else value
        for key, value in options.items()
        if value is not None
    }
    text, made = _calls_in(text, path, given, command.environment)
    readings = _without_loops(made, text)
    _loaded_alike(text, readings)
    _read_by_name(text, path, given, command.environment, readings, named_options(command, readings))
    _frozen(text, readings)
    return text, readings


def _calls_in(
    text: str, script: Path, given: Mapping[str, Plain], environment: Mapping[str, str]
) -> tuple[str, list[Reading]]:
    """Return what calls of a script say, and its text; of one that calls nothing known, with the modules behind it."""
    alongside = partial(module_text, script), partial(options_alongside, script)
    made = list(calls(text, str(script), given, environment, *alongside))
    starts: list[tuple[int, Path]] = []
    if not made:
        whole, starts = _with_modules(text, script)
        made = list(calls(whole, str(script), given, environment, *alongside)) if starts else []
        text = whole if made else text
    readings = [started(read_document(document, owner), called) for document, owner, called in made]
    for reading in readings:
        _put_into_modules(reading, starts)
    return text, readings


def _with_modules(text: str, script: Path) -> tuple[str, list[tuple[int, Path]]]:
    """Return a script with the modules behind it that it takes names of and that train, and where these begin."""
    starts: list[tuple[int, Path]] = []
    for path in filter(None, (module_file(script, module) for module in modules_used(text))):
        with suppress(CapacityError):
            if _TRAINS_ITSELF.search(further := read_text(path)) and is_python(further):
                starts.append((text.count("\n") + 2, path))
                text = f"{text}\n{further}"
    return text, starts


def _put_into_modules(reading: Reading, starts: Sequence[tuple[int, Path]]) -> None:
    """Let what modules behind a script say stand in their files."""

    def moved(place: Place) -> Place:
        first, path = max((one for one in starts if place.line and one[0] <= place.line), default=(1, None))
        return (
            place if path is None or place.line is None else replace(place, file=str(path), line=place.line - first + 1)
        )

    reading.settings = [replace(one, place=moved(one.place)) for one in reading.settings]
    reading.unknown = [replace(one, place=moved(one.place)) for one in reading.unknown]
    reading.unmodelled = [replace(one, place=moved(one.place)) for one in reading.unmodelled]


def named_options(command: Command, readings: Sequence[Reading]) -> Reading:
    """Return what options of a script itself say by their names of which no call that is known says anything."""
    owner, document = tool(_OWN_OPTIONS), command.document
    given_alone = {setting.field for one in readings for setting in one.settings if setting.level == "said"}
    given = given_alone | {OF_LOOPS[quantity] for quantity in given_alone & OF_LOOPS.keys()}
    if {one.tool.id for one in readings} & {
        _TRAINERS,
        _TRAINER,
        "trl",
    }:  # These split a model where their own options say
        given |= _SPLITS
    data = document.data if isinstance(document.data, dict) else {}
    values = ((key, value) for key, value in data.items() if not str(value).endswith(_OF_OPTIONS))
    named = {key: value for key, value in values if key.startswith("-") and owner.knows_option((key,))}
    reading = read_document(replace(document, data=named), owner)
    reading.settings = [setting for setting in reading.settings if setting.field not in given]
    return reading


def _read_by_name(
    text: str,
    script: Path,
    given: Mapping[str, Plain],
    environment: Mapping[str, str],
    readings: Sequence[Reading],
    named: Reading | None = None,
) -> None:
    """Add what a script reads itself by names of which no call says anything: of a loop all, of a trainer the length.

    Args:
        named: what options say by their names that the script is started with.
    """
    called = {reading.tool.id for reading in readings}
    wanted = {*(_TRAINS if _LOOP in called else ()), Key.TRAINING_SEQ_LEN} if called & {_LOOP, _TRAINER} else set()
    settings = [one for reading in (*readings, *([named] if named else [])) for one in reading.settings]
    there = {one.field for one in settings if one.level == "said" or one.field == Key.TRAINING_SEQ_LEN}
    wanted -= {*there, *(Key.TRAINING_SEQ_LEN for field in there if field.endswith("_length"))}
    if not wanted:
        return
    values = own_values(text, given, environment, partial(module_text, script), partial(options_alongside, script))
    lines = {name: re.search(rf"\b{name}\b", text) for name in values}
    places: dict[KeyPath, int] = {
        (f"--{name}",): text.count("\n", 0, match.start()) + 1 for name, match in lines.items() if match
    }
    given_values = {f"--{name}": value for name, value in values.items() if not _is_unset(value)}
    document = Document(given_values, str(script), places)
    read = named_options(Command(document), readings).settings
    readings[-1].settings += [one for one in read if one.level == "said" and one.field in wanted]


def _is_unset(value: Plain) -> bool:
    """Whether a value stands for none, as 0 and -1 do."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= 0


def trains_by_name(command: Command, reading: Reading) -> bool:
    """Whether options of a program that is not read are of a training, as their names and its own say."""
    data = command.document.data if isinstance(command.document.data, dict) else {}
    if command.serves(reading.tool) or not any(_BATCH.search(key) for key in data):
        return False
    fields = {setting.field for setting in reading.settings if setting.level == "said"}
    adapts = bool({*_ADAPTED, Key.TRAINING_ADAPTER_RANK} & fields)
    return "model" in fields and len(_TRAINS & fields) + adapts > 1


def _is_loaded(command: Command, key: str, value: str, text: str) -> bool:
    """Whether a script loads the file of options that a command gives it: ``load_config(arguments.config)``."""
    loads = re.search(rf"(?:open|load|read)\w*\(\s*(?:\w+\.)?{re.escape(option_name(key))}\b", text)
    return loads is not None and located(Path(value), Path(command.document.file or "").parent, set()) is not None


def own_options(command: Command, text: str, read: Set[str], named: Reading) -> Iterator[Remark]:
    """Yield the options of a program that is none of a tool's which neither its text nor a file of them explains.

    Args:
        read: the names of the files that are read.
        named: what options say by their names.
    """
    by_name = {setting.place.field for setting in named.settings}
    data = command.document.data if isinstance(command.document.data, dict) else {}
    behind = names_read(text) if text else frozenset()
    owner = command.program.rpartition(" ")[2] or "a program that is not named"
    for key, value in data.items():
        if isinstance(value, str) and OPTIONS_FILE.search(value):
            if Path(value).name not in read and not _is_loaded(command, key, value, text):
                yield Remark(command.document.place(key), f"{value}: options in a form of {owner} itself: not read")
        elif key in by_name:
            yield Remark(command.document.place(key), f"an option of {owner} itself: read by its name")
        elif (key.startswith("-") or isinstance(value, FurtherOptions)) and is_unread(key, text, behind, value):
            yield Remark(command.document.place(key), f"an option of {owner} itself: not read")


def is_unread(key: str, text: str, read: Set[str], value: object = None) -> bool:
    """Whether an option of a script goes unread: its text has none, or no call that is known depends on it."""
    name = option_name(key).rpartition(".")[2]
    return name not in text or (name not in read and bears_on_a_run(name, value))
