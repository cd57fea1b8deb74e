"""What stands before the program of a command, and is not it: containers, environments, launchers and the like."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from capacity_tui.engine.catalog import Plain, parse_shipped, read_text
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.imports.scripts.shell_words import Word
from capacity_tui.engine.plan.options.tools import Tool, tools

OPTION = re.compile(r"--?[A-Za-z_]")

TAKES_MODEL = re.compile(r"serve|launch_server|run|trtllm-serve|api_server|pretrain|finetune(?:_\w+)?")
"""What a model without an option stands behind: ``vllm serve MODEL``, ``litgpt finetune_lora MODEL``."""

_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "apptainer", "singularity"})
"""Programs that run another one in an image."""

_RUNS_IN_IMAGE = frozenset({"run", "exec", "create"})  # The commands of those that do

_GIVEN_NAMES = frozenset(
    {"--name", "--network", "--net", "--network-alias", "--hostname", "-h", "-v", "--volume", "--mount", "-e", "--env"}
    | {"--env-file", "-l", "--label", "-w", "--workdir", "-u", "--user"}
)
"""Options of those whose values are no images, whatever they are called."""

_BEFORE = frozenset({"exec", "sudo", "nohup", "time", "uvx"})
"""Words before a command that change nothing of it."""

_ENVIRONMENTS = frozenset({"conda", "mamba", "micromamba", "poetry", "pixi", "uv"})
"""Programs that run another one in an environment, behind ``run`` and options of their own."""

_NAMED = frozenset({"-n", "--name", "-p", "--prefix", "--with", "--extra", "--group", "--project", "--directory"})
"""Options of those whose values are no programs."""

_SPREADS = frozenset(
    {"mpirun", "mpiexec", "srun", "numactl", "nohup", "time", "taskset"} | {"setsid", "env", "timeout", "nice", "nsys"}
)
"""Programs that start another one, with options of their own before it."""

_OF_MODULES = frozenset({"-m", "--module"})  # What stands before a module that is to run

PYTHON = re.compile(r"(?:.*/)?python[\d.]*")

_CONTINUED = re.compile(r"\\[ \t]*\n(?:[ \t]*#.*\n)*")  # A line that goes on, and comments between
_INSTRUCTION = re.compile(
    r"(FROM|ARG|ENV|RUN|CMD|ENTRYPOINT|COPY|ADD|WORKDIR|EXPOSE|USER|VOLUME|LABEL|SHELL|HEALTHCHECK|STOPSIGNAL|ONBUILD)"
    r"\s+(.*)",
    re.IGNORECASE,
)
"""Of a file of Docker."""
_PAIR = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)")
_VOLUME = re.compile(r"([^:]*/[^:]*[^:/])/?:(/[^:]+?)/?(?::\w+)?")  # A folder of the machine, and of the container
_WHOLE_PATH = r"(?<![\w./-]){}/?(?![\w./-])"  # That alone: what lies below it has a name of its own

_IMAGE_FILE = "dockerfile"

SCRIPT = re.compile(r".*\.py")


SHELLS = frozenset({"bash", "sh", "zsh", "dash"})

_PASSES = frozenset({"ssh", "tmux", "screen"})  # Programs that have a shell run a text of their arguments

_LIST = re.compile(r"\([^\s()']+\)")  # Python in brackets, whose quotes are off before ``eval`` reads it again

_SETS, _SET = "env", re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)  # What sets variables for a program, and one


@cache
def words_of_manifests() -> Mapping[str, Any]:
    """Return what files say that run programs on machines: ``profiles/manifests.yaml``."""
    rows: dict[str, Any] = parse_shipped(files("capacity_tui.profiles") / "manifests.yaml")
    return rows


def program_of_image(image: str, variables: Iterable[tuple[str, str]] = ()) -> str:
    """Return the program that an image starts, by its name and variables; empty for one that is not known."""
    programs: Mapping[str, str] = words_of_manifests()["images"]
    part, program = next(((part, program) for part, program in programs.items() if part in image), ("", ""))
    if program in words_of_manifests()["options_in_variables"]:
        return shlex.join([program, *_options_in(variables, program)])
    if program not in words_of_manifests()["one_model"]:
        return program
    model = image.partition(part)[2].partition(":")[0].partition("@")[0]
    options = (f"--{name}={value}" for name, value in variables if name.startswith(f"{program.upper()}_"))
    return shlex.join([program, f"--model={model}", *options])


def _options_in(variables: Iterable[tuple[str, str]], program: str) -> Iterator[str]:
    """Yield the options of a program that variables of its container give."""
    before: str = words_of_manifests()["options_in_variables"][program]
    owner = tool_called(program)
    for name, value in variables:
        option = name.removeprefix(before).casefold()
        if name.startswith(before) and (before or (owner is not None and owner.knows_option((option,)))):
            yield f"--{option}={value}"


def started_programs(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return the words of the launcher of a command, where there is one, and of the program that it starts."""
    return _programs(_submitted(words))


def _submitted(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the command behind ``--``, as ``ray job submit -- python ...`` has it; all words where there is none."""
    while len(words) > 1 and words[0].text in _BEFORE:
        words = words[1:]
    if len(words) > 1 and words[0].text in _ENVIRONMENTS and words[1].text == "run":
        further = enumerate(words[2:], 2)
        starts = (at for at, word in further if words[at - 1].text not in _NAMED and _starts_program(word.text))
        words = words[next(starts, 0) :]
    at = next((index for index, word in enumerate(words) if word.text == "--"), len(words))
    behind = words[at + 1 :]
    return _wrapped(_in_image(behind if behind and not behind[0].text.startswith("-") else words))


def _starts_program(text: str) -> bool:
    """Whether a word is a program that runs Python, or one of a tool."""
    called = text.rpartition("/")[2]
    first_words = {program.split()[0] for tool in tools().values() for program in tool.programs}
    return PYTHON.fullmatch(called) is not None or called in {"torchrun", "deepspeed", "accelerate", *first_words}


def _in_image(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return what an image runs that a command starts, as ``docker run --gpus all vllm/vllm-openai --model ...``."""
    if words[0].text.rpartition("/")[2] not in _CONTAINERS or not _RUNS_IN_IMAGE & {word.text for word in words[:4]}:
        return words
    behind_names = (pair for pair in enumerate(words[1:], 1) if words[pair[0] - 1].text not in _GIVEN_NAMES)
    at = next((index for index, word in behind_names if program_of_image(word.text)), 0)
    before, entry = next(
        (pair for pair in enumerate(words) if words[pair[0] - 1].text == "--entrypoint"), (0, words[0])
    )
    if not at and before and _starts_program(entry.text) and len(words) > before + 1:
        at = before + 1  # an image of one's own
    if not at:
        return words[_program_starts(words) :]
    behind, image = words[at + 1 :], words[at]
    pairs = (word.text.removeprefix("--env=") for word in words[:at])
    variables = ((name, value) for name, equals, value in (pair.partition("=") for pair in pairs) if equals)
    program = program_of_image(image.text, variables) if not behind or behind[0].text.startswith("-") else ""
    program = entry.text.rpartition("/")[2] if 0 < before < at else program
    return (*(Word(part, image.line) for part in shlex.split(program)), *behind)


def _wrapped(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the Python that another program starts with options of its own, as ``numactl --membind=0 python ...``."""
    if any(_starts_launcher(words, index, word.text) for index, word in enumerate(words)):
        return words
    starts = (index for index, word in enumerate(words[:-1]) if PYTHON.fullmatch(word.text))
    at = next((index for index in starts if words[index + 1].text == "-m" or _is_program(words, index + 1)), 0)
    if not at and words[0].text.rpartition("/")[2] in _SPREADS:
        at = _program_starts(words)
    return words[at:] if any(OPTION.match(word.text) for word in words[:at]) else words


def _program_starts(words: Sequence[Word]) -> int:
    """Return where the program of a tool begins in a command that starts it; 0 where it starts none."""
    programs = {program for one in tools().values() for program in one.programs}
    for at, (before, word) in enumerate(pairwise(words), 1):
        # A program of one word that has no option is only named: ``docker run own/image which llama-server``.
        has_options = any(OPTION.match(behind.text) for behind in words[at + 1 : at + 3])  # maybe after a model
        serves = TAKES_MODEL.fullmatch(word.text) is not None and at + 2 == len(words)
        is_alone = (has_options or serves) and bool({word.text, word.text.rpartition("/")[2]} & programs)
        if (is_alone or _starts_tool(words, at)) and ":" not in word.text and before.text not in _NAMED:
            return at
    return 0


def tool_called(called: str) -> Tool | None:
    """Return the tool whose program is called; None for another program."""
    return next((candidate for candidate in tools().values() if candidate.started(called)), None)


def _programs(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return the words of a launcher, where there is one, and of the program that it starts."""
    starts = [index for index, word in enumerate(words) if _starts_launcher(words, index, word.text)]
    if not starts:
        return (), words
    rest = range(starts[-1] + 1, len(words))
    script = next((index for index in rest if _is_program(words, index) or _starts_tool(words, index)), None)
    if script is None:
        return words[starts[-1] :], ()
    if words[script - 1].text in _OF_MODULES:  # torchrun -m train, as python -m train
        started = (replace(words[script - 1], text=text) for text in ("python", "-m"))
        return words[starts[-1] : script - 1], (*started, *words[script:])
    return words[starts[-1] : script], words[script:]


def _starts_launcher(words: Sequence[Word], index: int, text: str) -> bool:
    called = text.rpartition("/")[2]
    following = words[index + 1].text if index + 1 < len(words) else ""
    before = words[:index] if words[0].text.rpartition("/")[2] in _SPREADS else ()
    return (
        called in {"torchrun", "deepspeed", "torch.distributed.launch", "torch.distributed.run"}
        or (called == "accelerate" and following == "launch")
    ) and (
        words[index - 1].text == "-m"
        or (before and not any(PYTHON.fullmatch(word.text) or SCRIPT.fullmatch(word.text) for word in before))
        or not any(OPTION.match(word.text) and word.text not in {"-m", "-u"} for word in words[:index])
    )


def _is_program(words: Sequence[Word], index: int) -> bool:
    text, before = words[index].text, words[index - 1].text
    return SCRIPT.fullmatch(text) is not None or before in _OF_MODULES


def _starts_tool(words: Sequence[Word], index: int) -> bool:
    """Whether a word and the next one are the program of a tool: ``swift sft``."""
    called = [word.text.rpartition("/")[2] for word in words[index : index + 2]]
    programs = (program.split() for tool in tools().values() for program in tool.programs)
    return any(program[:2] == called for program in programs if len(program) > 1)


def variables_of(value: Plain) -> Iterator[tuple[str, str]]:
    """Yield the variables that a section sets: by name, as a list of names and values, or of ``NAME=value``."""
    if isinstance(value, dict):
        yield from ((str(name), str(text)) for name, text in value.items() if text is not None)
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and "value" in entry:
            yield str(entry.get("name")), str(entry["value"])
        elif isinstance(entry, str) and "=" in entry:
            name, _, text = entry.partition("=")
            yield name, text


def image_file(text: str) -> dict[str, Plain] | None:
    """Return what a file of Docker has its image start, as a service of a compose file; None for other texts."""
    lines = [line.strip() for line in _CONTINUED.sub(" ", text).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    given = [match for match in map(_INSTRUCTION.fullmatch, lines) if match]
    last = {match[1].upper(): match[2] for match in given}
    begins = _INSTRUCTION.fullmatch(lines[0]) if lines else None
    if begins is None or begins[1].upper() not in ("FROM", "ARG") or "FROM" not in last:
        return None
    service: dict[str, Plain] = {"image": last["FROM"].split()[0]}
    variables: dict[str, Plain] = {}
    for match in given:
        if match[1].upper() == "ENV":
            pairs = _PAIR.findall(match[2]) or [match[2].partition(" ")[::2]]
            variables |= {name: value.strip("\"' ") for name, value in pairs}
    for instruction, part in (("ENTRYPOINT", "entrypoint"), ("CMD", "command")):
        if (words := last.get(instruction)) is not None:
            service[part] = _listed(words)
    return {**service, "environment": variables}


def _listed(words: str) -> Plain:
    """Return the words of an instruction, which is a list in JSON or a line of a shell."""
    with suppress(ValueError):
        listed: Plain = json.loads(words)
        return listed
    return words


def configurations_of(documents: Iterable[Plain]) -> Mapping[str, Mapping[str, Plain]]:
    """Return what ConfigMaps of Kubernetes hold, by their names."""
    held: dict[str, Mapping[str, Plain]] = {}
    for data in documents:
        about, values = (data.get("metadata"), data.get("data")) if isinstance(data, dict) else (None, None)
        if isinstance(about, dict) and isinstance(values, dict):
            held[str(about.get("name"))] = values
    return held


def configured(data: Plain, held: Mapping[str, Mapping[str, Plain]]) -> Plain:
    """Return a part of a manifest with the variables of its containers that it takes from ConfigMaps, written out."""
    if isinstance(data, list):
        return [configured(part, held) for part in data]
    if not isinstance(data, dict) or not held:
        return data
    whole: dict[str, Plain] = {key: configured(value, held) for key, value in data.items()}
    source = data.get("valueFrom")
    if isinstance(source, dict) and isinstance(kept := source.get("configMapKeyRef"), dict):
        value = held.get(str(kept.get("name")), {}).get(str(kept.get("key")))
        return whole if value is None else {"name": data.get("name"), "value": value}
    sources = data.get("envFrom")
    parts = (part for part in (sources if isinstance(sources, list) else []) if isinstance(part, dict))
    named = [kept.get("name") for part in parts if isinstance(kept := part.get("configMapRef"), dict)]
    further: list[Plain] = [
        {"name": name, "value": value} for kept in named for name, value in held.get(str(kept), {}).items()
    ]
    own = whole.get("env")
    return {**whole, "env": [*further, *(own if isinstance(own, list) else [])]} if further else whole


def with_machine(data: Plain, folder: Path) -> Plain:
    """Return data of a compose file with what lies in its machine: images that are built there, and folders."""
    services = data.get("services") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(services, dict):
        return data
    return {**data, "services": {name: _mounted(_built(service, folder)) for name, service in services.items()}}


def _built(service: Plain, folder: Path) -> Plain:
    """Return a service with what the image starts that it is built as; its own entry point starts nothing of that."""
    build = service.get("build") if isinstance(service, dict) else None
    if not isinstance(service, dict) or build is None:
        return service
    parts: Mapping[str, Plain] = build if isinstance(build, dict) else {"context": build}
    path = folder / str(parts.get("context", ".")) / str(parts.get(_IMAGE_FILE, "Dockerfile"))
    with suppress(CapacityError, OSError, ValueError):
        image = image_file(read_text(path)) or {}
        if "entrypoint" in service:
            image.pop("command", None)
        variables = [*variables_of(image.pop("environment", None)), *variables_of(service.get("environment"))]
        own = {part: service[part] for part in ("entrypoint", "command") if service.get(part)}
        return {**service, **image, **own, "environment": dict(variables), _IMAGE_FILE: str(path)}
    return service


def images_built(data: Plain) -> Iterator[Path]:
    """Yield the files of the images that the services of a compose file are built as."""
    services = data.get("services") if isinstance(data, dict) else None
    for service in services.values() if isinstance(services, dict) else ():
        if isinstance(service, dict) and isinstance(path := service.get(_IMAGE_FILE), str):
            yield Path(path)


def _mounted(service: Plain) -> Plain:
    """Return a service whose words name what lies in its machine: ``--model-id=/data`` is ``./models/Qwen3-8B``."""
    if not isinstance(service, dict):
        return service
    volumes = [match for match in map(_VOLUME.fullmatch, _texts(service.get("volumes"))) if match]
    changed = dict(service)
    for part in ("command", "entrypoint", "environment"):
        for volume in volumes:
            changed[part] = _replaced(
                changed.get(part), re.compile(_WHOLE_PATH.format(re.escape(volume[2]))), volume[1]
            )
    return {key: value for key, value in changed.items() if value is not None}


def _replaced(data: Plain, path: re.Pattern[str], by: str) -> Plain:
    """Return texts of a part of a document with one path in place of another."""
    if isinstance(data, dict):
        return {key: _replaced(value, path, by) for key, value in data.items()}
    if isinstance(data, list):
        return [_replaced(value, path, by) for value in data]
    return path.sub(lambda _: by, data) if isinstance(data, str) else data


def _texts(value: Plain) -> Iterator[str]:
    return (part for part in (value if isinstance(value, list) else []) if isinstance(part, str))


def set_for(words: Sequence[Word]) -> tuple[dict[str, tuple[Word, ...]], list[Word]]:
    """Return the variables that ``env`` sets for a program, and the words of that; others as they are."""
    if not words or words[0].text.rpartition("/")[2] != _SETS:
        return {}, [*words]
    pairs = [(_SET.fullmatch(word.text), word) for word in takewhile(lambda word: _SET.fullmatch(word.text), words[1:])]
    return {match[1]: (replace(word, text=match[2]),) for match, word in pairs if match}, [*words[len(pairs) + 1 :]]


def inner_script(words: Sequence[Word]) -> Word | None:
    """Return the script that a shell is given as an argument; None where it is given none."""
    if words[0].text == "eval":
        texts = (f"'{word.text}'" if _LIST.fullmatch(word.text) else word.text for word in words[1:])
        return Word(" ".join(texts), words[0].line)
    if words[0].text.rpartition("/")[2] in _PASSES:
        return next((word for word in reversed(words) if word.quoted and " " in word.text), None)
    shell = next((at for at, word in enumerate(words) if word.text.rpartition("/")[2] in SHELLS), None)
    if shell is None:
        return None
    # Behind --entrypoint of a container the image comes first.
    is_image = shell > 0 and words[shell - 1].text == "--entrypoint"
    rest = words[shell + 1 + is_image :]
    options = list(takewhile(lambda word: word.text.startswith("-"), rest))
    is_given = any(word.text.endswith("c") for word in options) and len(rest) > len(options)
    return rest[len(options)] if is_given else None
