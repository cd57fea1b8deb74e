"""Files that run programs on machines: Kubernetes manifests, compose files, charts, units and model files.

What they run is read as a script of the same lines; on what, from the resources that they ask for.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from capacity_tui.engine.catalog import Document, KeyPath, Plain, read_text, read_yaml
from capacity_tui.engine.errors import CapacityError, Place
from capacity_tui.engine.plan.imports.scripts.charts import (
    below,
    counts_of,
    devices_of,
    held_texts,
    image_of,
    served,
    served_by_chart,
    variables_in,
    words_of,
)
from capacity_tui.engine.plan.imports.scripts.shell import filled_text
from capacity_tui.engine.plan.imports.scripts.starting import (
    configurations_of,
    configured,
    image_file,
    images_built,
    program_of_image,
    with_machine,
    words_of_manifests,
)
from capacity_tui.engine.plan.imports.setting import ImportedSetting, Remark
from capacity_tui.engine.plan.options.tools import option_name
from capacity_tui.engine.record import dataclass

_TERRAFORM = ".tf"
_NEXT = re.compile(r"^---.*$", re.MULTILINE)
_SHELL, _SCRIPT = frozenset({"sh", "bash", "ash", "zsh"}), re.compile(r"-[a-z]*c")
_UNIT, _STARTS = re.compile(r"^\[Service\]", re.MULTILINE), re.compile(r"(?:ExecStart=[-@:+!]*|Environment=)(.*)")
_SPREAD = re.compile(r"--nnodes[ =](?!1\b)")  # An option of what serves over several nodes
_FROM = re.compile(r"\s*FROM\s+(\S+)", re.IGNORECASE)
_PARAMETER = re.compile(r"\s*PARAMETER\s+(\w+)\s+(\S+)", re.IGNORECASE)
_OF_MODEL = re.compile(
    r"\s*(?:FROM|PARAMETER|TEMPLATE|SYSTEM|ADAPTER|LICENSE|MESSAGE|REQUIRES|RENDERER|PARSER|DRAFT)\s", re.IGNORECASE
)
"""An instruction of a model file, as ``parser/parser.go`` of Ollama takes it; those of images are others."""
_QUOTED = re.compile(r'(?<=\s)(?:"""[\s\S]*?"""|"[\s\S]*?"[ \t]*$)', re.MULTILINE)
_ADDED = re.compile(r"\s*(ADAPTER|DRAFT)\s+(\S+)", re.IGNORECASE)
_OF_SHELL = re.compile(r"\$\{env\.(\w+)\}")  # A variable of the shell in a file of llama-swap
_NAMES_MODEL = re.compile(
    r"--model(?:[_-](?:id|path))?[= ](?!'?/mnt/models\b)"
)  # In a command; KServe's folder is none
_SCHEME = re.compile(r"hf://|\w+:/(?=/)")  # Where KServe brings a model from: the hub, or a folder
_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(\".*\"|'.*'|.*?)(?:\s+#.*)?\s*")
_MODEL = re.compile(r"(?!/(?:bin|usr|opt|app|entrypoint)\b)/?(?:[\w.-]+/)+[\w-][\w.-]*(?<!\.sh)(?<!\.py)")
"""A model alone, as the first argument of the program of an image."""
_SERVICE, _PARAMETERS = "LLMInferenceService", "parameters.yaml"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a file runs."""

    script: str  # its commands, each in the line in which the file has it
    devices: int = 0  # accelerators of one copy; 0 where none are asked for
    copies: int = 1  # how often it runs
    device: str = ""  # what the accelerators are called; empty where the file does not say
    name: str = ""  # the file
    most_copies: int = 1  # as often as the load asks for
    grouped: bool = False  # whether each copy is a group of nodes
    files: Mapping[str, str] = field(default_factory=dict, hash=False)  # the texts of those that stand in it, by name
    on_processors: bool = False  # whether its image is for these
    built: Set[Path] = field(default_factory=frozenset, hash=False)  # files of the images that it builds

    def settings(self, *, serves: bool) -> Iterator[ImportedSetting]:
        """Yield how many devices there are; of what serves on one node each copy is a replica, of others a node."""
        place = Place(self.name)
        if self.device:
            yield ImportedSetting("device", self.device, place, self.device)
        if self.copies > 1:
            is_replica = serves and (self.grouped or _SPREAD.search(self.script) is None)
            yield ImportedSetting("copies" if is_replica else "nodes", self.copies, place, "replicas")
        if self.devices:
            yield ImportedSetting("seen" if serves else "per_process", self.devices, place, "accelerators")

    def remarks(self) -> Iterator[Remark]:
        """Yield what of it no plan has a word for."""
        if self.most_copies > self.copies or not self.copies:
            most = f"up to {self.most_copies} replicas as the load asks for" if self.most_copies > 1 else "switched off"
            yield Remark(Place(self.name, field="replicas"), f"{most}: {max(self.copies, 1)} counted")
        if self.on_processors:
            yield Remark(Place(self.name, field="image"), "it serves on processors: an accelerator is counted")


def manifest_of(text: str, name: str) -> Manifest | None:
    """Return what a text runs; None where it is no file that runs programs."""
    if _UNIT.search(text):
        return Manifest(_unit(text), name=name)
    if (model := _model_file(text)) is not None:
        return Manifest(model, name=name)
    if Path(name).suffix == _TERRAFORM:
        text = held_texts(text)
    image = image_file(text)
    documents = [*_documents(text, name)] if image is None else [Document(image, name)]
    held = configurations_of(document.data for document in documents)
    documents = [replace(document, data=configured(document.data, held)) for document in documents]
    containers = [container for document in documents for container in _containers(document, document.data)]
    running = [container for container in containers if container.script]
    if not running:
        return None
    first = max(running, key=lambda container: container.devices)
    copies = sum(container.copies for container in running if container.script == first.script)
    script = [""] * max(container.line for container in running)
    for container in reversed(running):
        script[container.line - 1] = "\n".join(filter(None, (container.script, script[container.line - 1])))
    most, built = max(one.most for one in running), {path for one in documents for path in images_built(one.data)}
    shared = first.grouped, dict(_files(documents)), first.on_processors, built
    return Manifest("\n".join(script), first.devices, copies, first.device, name, most, *shared)


def _files(documents: Iterable[Document]) -> Iterator[tuple[str, str]]:
    """Yield the files that ConfigMaps hold, by their names, and the parameters of MosaicML's runs."""
    for data in (document.data for document in documents if isinstance(document.data, dict)):
        if isinstance(held := data.get("data"), dict):
            yield from ((key, text) for key, text in held.items() if isinstance(text, str))
        if isinstance(parameters := data.get("parameters"), dict):
            yield _PARAMETERS, json.dumps(parameters)


@dataclass(frozen=True, slots=True)
class _Container:
    script: str
    line: int
    devices: int
    copies: int
    device: str
    most: int
    on_processors: bool = False
    grouped: bool = False  # whether it leads others, which the same copy has


def _documents(text: str, name: str) -> Iterator[Document]:
    """Yield the documents of a YAML text, each with the lines of the whole; those that cannot be read are left out."""
    start = 0
    for end in (*(match.start() for match in _NEXT.finditer(text)), len(text)):
        part = _NEXT.sub("", text[start:end], count=1)
        if part.strip():
            with suppress(CapacityError):
                document = read_yaml("\n" * text.count("\n", 0, start) + part, name, of_other_tool=True)
                if isinstance(document.data, dict) and "services" in document.data:
                    filled = _filled_in(document.data, _variables_of_folder(name))
                    document = replace(document, data=with_machine(filled, Path(name).parent))
                elif isinstance(document.data, dict) and isinstance(models := document.data.get("models"), dict):
                    document = replace(document, data={"models": dict(_swapped(models, document.data.get("macros")))})
                elif isinstance(document.data, dict):
                    document = replace(document, data=_recipe(document.data))
                yield document
        start = end


def _swapped(models: Mapping[str, Plain], macros: Plain) -> Iterator[tuple[str, Plain]]:
    """Yield the models of a file of llama-swap by name, each with its command on one line and macros put in."""
    texts = {f"${{{name}}}": str(text) for name, text in (macros if isinstance(macros, dict) else {}).items()}
    for name, model in models.items():
        if isinstance(model, dict) and isinstance(command := model.get("cmd"), str):
            for macro in (*texts, *texts):  # one may hold another
                command = command.replace(macro, texts[macro])
            lines = (line.strip().removesuffix("\\") for line in command.splitlines())
            joined = " ".join(line for line in lines if not line.startswith("#"))
            yield name, {"command": _OF_SHELL.sub(r"${\1}", joined.replace("${MODEL_ID}", name))}


def _recipe(data: dict[str, Plain]) -> dict[str, Plain]:
    """Return a recipe of sparkrun with its defaults, and what else it says, in its command; others as given."""
    usual, command = data.get("defaults"), data.get("command")
    if not isinstance(usual, dict) or not isinstance(command, str):
        return data
    values = {f"{{{key}}}": str(value) for key, value in {**data, **usual}.items()}
    for name, value in values.items():
        command = command.replace(name, value) if name != "{command}" else command
    return {**data, "command": command}


def _variables_of_folder(name: str) -> Mapping[str, str]:
    """Return the variables of the file beside a compose file that it takes its own from, earlier ones put in."""
    variables: dict[str, str] = {}
    with suppress(CapacityError, OSError):
        for match in filter(None, map(_VARIABLE.fullmatch, read_text(Path(name).with_name(".env")).splitlines())):
            variables[match[1]] = filled_text(match[2].strip("\"'"), variables)
    return variables


def _filled_in(data: Plain, variables: Mapping[str, str]) -> Plain:
    """Return data of a compose file with variables and their defaults put in."""
    if isinstance(data, dict):
        return {key: _filled_in(value, variables) for key, value in data.items()}
    if isinstance(data, list):
        return [_filled_in(value, variables) for value in data]
    # Of two dollars one stands for itself, for the shell of the container.
    return "$".join(filled_text(part, variables) for part in data.split("$$")) if isinstance(data, str) else data


def _containers(
    document: Document, data: Plain, path: KeyPath = (), copies: int = 1, device: str = "", most: int = 1
) -> Iterator[_Container]:
    """Yield what runs in a part of a document, which stands at a path of it, with how often and where that is."""
    if isinstance(data, list):
        for index, entry in enumerate(data):
            yield from _containers(document, entry, (*path, index), copies, device, most)
    if not isinstance(data, dict):
        return
    copies *= max(next(counts_of(data, "copies"), 1), 0)
    most = max(next(counts_of(data, "most_copies"), most), most)
    device = next((str(value) for value in below(data, words_of_manifests()["labels"], 3)), device)
    if data.get("kind") == _SERVICE and isinstance(spec := data.get("spec"), dict):
        yield from _service(document, spec, (*path, "spec"))
        return
    script = _command(data)
    if script:
        parts = (*path, "args"), (*path, "command"), *(path[:length] for length in range(len(path), 0, -1))
        line = next((document.lines[part] for part in parts if document.lines.get(part)), 1)
        on_processors = any(part in image_of(data) for part in words_of_manifests()["processors"])
        yield _Container(script, line, devices_of(data), copies, device, most, on_processors)
        return
    for key, value in data.items():
        if "leaderTemplate" in data:  # the leader says what they serve together
            if key == "leaderTemplate":
                led = _containers(document, value, (*path, key), copies, device, most)
                yield from (replace(container, grouped=True) for container in led)
            continue
        inner = value
        if key == "serveConfigV2" and isinstance(value, str):  # a file of Ray Serve in one of Kubernetes
            with suppress(CapacityError):
                inner = read_yaml(value, document.file or "", of_other_tool=True).data
        yield from _containers(document, inner, (*path, key), copies, device, most)


def _service(document: Document, spec: Mapping[str, Plain], path: KeyPath, model: Plain = "") -> Iterator[_Container]:
    """Yield what an LLMInferenceService of KServe runs: vLLM, for prompts apart where it has a section for them."""
    named, split, template = (spec.get(key) for key in ("model", "parallelism", "template"))
    uri = named.get("uri", model) if isinstance(named, dict) else model
    listed = template.get("containers") if isinstance(template, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    container = first if isinstance(first, dict) else {}
    further = [text for name, text in variables_in(container) if name in words_of_manifests()["further_options"]]
    sizes = split if isinstance(split, dict) else {}
    options = {f"{key}_parallel_size": sizes[key] for key in ("tensor", "pipeline", "data") if key in sizes}
    options["enable_expert_parallel"] = sizes.get("expert", False)
    command = " ".join(
        (served(_SCHEME.sub("", str(uri)), options), shlex.join(words_of(container.get("args"))), *further)
    )
    line = next((document.lines[path[:at]] for at in range(len(path), 0, -1) if path[:at] in document.lines), 1)
    copies = max(next(counts_of(spec, "copies"), 1), 1)
    yield _Container(command, line, devices_of(container), copies, "", copies)
    if isinstance(prompts := spec.get("prefill"), dict):
        yield from _service(document, prompts, (*path, "prefill"), uri)


def _command(data: Mapping[str, Plain]) -> str:
    """Return what a container runs, as a line of a shell with its variables before it; empty where it runs nothing."""
    if started := served_by_chart(data):
        return started
    if isinstance(data.get("modelURL"), str):
        return served(data["modelURL"], data.get("vllmConfig"))
    loading, kwargs = data.get("model_loading_config"), data.get("engine_kwargs")
    if isinstance(loading, dict):
        return served(loading.get("model_source") or loading.get("model_id"), kwargs)
    parts = ("command", "args") if _is_prepared(data) else ("entrypoint", "command", "args")
    given = [part for name in parts for part in words_of(data.get(name))]
    if not given and not ("storageUri" in data and _started(data)):
        started = _started(data) if "image" in data else ""
        split = words_of_manifests()["one_model"].get(started.partition(" ")[0])
        is_split = split is not None and f"--{split}" not in started and devices_of(data) > 1
        is_whole = split is not None or " --" in started
        return f"{started} --{split}={devices_of(data)}" if is_split else started if is_whole else ""
    given = given or ["-"]
    program = given[0].rpartition("/")[2]
    if program in _SHELL and len(given) > 2 and _SCRIPT.fullmatch(given[1]):
        command = given[2]
    else:
        of_image = _started(data)
        is_model = (
            bool(of_image) and "entrypoint" not in data and _MODEL.fullmatch(given[0].partition(" ")[0]) is not None
        )
        has_options = given[0].startswith("-")
        image = image_of(data).rpartition("/")[2] or str(data.get("container_name", ""))
        started = of_image if is_model else (of_image or image) if has_options else ""
        if has_options and not started:
            return ""
        # A text is a line of a shell, a list has a word each.
        texts = (data.get(name) for name in parts)
        words = (text if isinstance(text, str) else shlex.join(words_of(text)) for text in texts if text)
        command = " ".join((started, *words)).strip()
    stored = data.get("storageUri")
    if isinstance(stored, str) and not _NAMES_MODEL.search(command):
        command += f" --model={shlex.quote(_SCHEME.sub('', stored))}"
    for name, value in variables_in(data):
        is_further = name in words_of_manifests()["further_options"] and name not in command
        command = f"{command} {value}" if is_further else command.replace(f"$({name})", value)
    variables = "".join(f"export {name}={shlex.quote(value)}; " for name, value in variables_in(data))
    return f"{variables}{command}"


def _is_prepared(data: Mapping[str, Plain]) -> bool:
    """Whether a script of one's own prepares a container, and then starts what follows as its command."""
    entry, command = words_of(data.get("entrypoint")), words_of(data.get("command"))
    return len(entry) == 1 and entry[0].endswith(".sh") and bool(command) and not command[0].startswith("-")


def _started(data: Mapping[str, Plain]) -> str:
    """Return the program that the image of a container starts, or the format of its model."""
    kind = data.get("modelFormat")
    by_format = (
        words_of_manifests()["formats"].get(str(kind.get("name")).casefold()) if isinstance(kind, dict) else None
    )
    words = (word for name in ("command", "args") for part in words_of(data.get(name)) for word in part.split())
    given = {option_name(word.partition("=")[0]) for word in words}
    variables = [(variable, value) for variable, value in variables_in(data) if variable.casefold() not in given]
    return str(by_format or program_of_image(image_of(data), variables))


def _unit(text: str) -> str:
    """Return the commands of a unit of systemd, and the variables before them, each in its line."""
    lines: list[str] = []
    for line in text.splitlines():
        start = _STARTS.match(line)
        goes_on = bool(lines) and lines[-1].endswith("\\")
        lines.append(start[1].strip('"') if start else line if goes_on else "")
    return "\n".join(lines)


def _model_file(text: str) -> str | None:
    """Return the command that a model file of Ollama stands for; None for other texts, such as those of images."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    base = _FROM.fullmatch(lines[0]) if lines else None
    plain = (line for line in _QUOTED.sub('""', "\n".join(lines)).splitlines() if line.strip())
    if base is None or program_of_image(base[1]) or not all(map(_OF_MODEL.match, plain)):
        return None
    parameters = {match[1]: match[2] for match in map(_PARAMETER.match, lines) if match}
    further = {match[1].casefold(): match[2] for match in map(_ADDED.match, lines) if match}
    options = (f"--{name}={value}" for name, value in (*parameters.items(), *further.items()))
    return shlex.join(["ollama", "run", base[1], *options])
