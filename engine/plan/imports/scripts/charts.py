"""What charts, resources of clusters and services say of what runs: programs, options, accelerators and copies."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping

from capacity_tui.engine.catalog import Plain
from capacity_tui.engine.plan.imports.scripts.starting import program_of_image, variables_of, words_of_manifests

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HELD = re.compile(
    r"<<[-~]?\"?(\w+)\"?[ \t]*\n(.*?)^[ \t]*\1\b", re.MULTILINE | re.DOTALL
)  # A text that stands in Terraform


def counts_of(data: Mapping[str, Plain], kind: str) -> Iterator[int]:
    """Yield how many there are of what stands in a section, or how many there may be."""
    words = words_of_manifests()[kind]
    for section, depth in ((dict(data), 1), (data.get("deployment_config"), 2)):
        yield from (value for value in below(section, words, depth) if isinstance(value, int))


def below(data: Plain, names: list[str], depth: int) -> Iterator[Plain]:
    """Yield values of some names in a mapping and the sections below it; limits of resources go before requests."""
    if not isinstance(data, dict) or not depth:
        return
    yield from (data[name] for name in names if isinstance(data.get(name), str | int))
    for key in sorted(data, key=str):
        yield from below(data[key], names, depth - 1)


def whole(value: Plain) -> int:
    return int(value) if isinstance(value, str | int) and str(value).isdigit() else 0


def devices_of(data: Mapping[str, Plain]) -> int:
    """Return the accelerators that a container asks for; 0 where it asks for none."""
    return whole(next(below(dict(data), words_of_manifests()["accelerators"], 4), 0)) or composed(data)


def composed(data: Mapping[str, Plain]) -> int:
    """Return the devices that a service of a compose file reserves."""
    reserved: Plain = dict(data)
    for key in ("deploy", "resources", "reservations", "devices"):
        reserved = reserved.get(key) if isinstance(reserved, dict) else None
    first = reserved[0] if isinstance(reserved, list) and reserved else None
    if not isinstance(first, dict):
        return 0
    ids = first.get("device_ids")
    return len(ids) if isinstance(ids, list) else whole(first.get("count"))


def words_of(value: Plain) -> list[str]:
    return [value] if isinstance(value, str) else [str(part) for part in value] if isinstance(value, list) else []


def image_of(data: Mapping[str, Plain]) -> str:
    """Return the name of a container's image, which charts write in parts."""
    image = data.get("image", "")
    return f"{image.get('repository', '')}:{image.get('tag', '')}" if isinstance(image, dict) else str(image)


def variables_in(data: Mapping[str, Plain]) -> list[tuple[str, str]]:
    return [pair for name in ("env", "environment") for pair in variables_of(data.get(name))]


def served(model: Plain, options: Plain) -> str:
    """Return the command of vLLM for options that stand in a section, in whatever case."""
    words = ["vllm", "serve", str(model)]
    for key, value in (options if isinstance(options, dict) else {}).items():
        option = _CAPITAL.sub("-", str(key)).casefold()
        if isinstance(value, list):
            words += map(str, value)  # extraArgs
        elif isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return shlex.join(words)


def held_texts(text: str) -> str:
    """Return the texts that a file of Terraform holds for charts, each as a document in its lines."""
    lines = [""] * (text.count("\n") + 1)
    for match in _HELD.finditer(text):
        first = text.count("\n", 0, match.start(2))
        held = match[2].rstrip("\n").split("\n")
        lines[first - 1 : first + len(held)] = ["---", *held]
    return "\n".join(lines)


def served_by_chart(data: Mapping[str, Plain]) -> str:
    """Return the server that values of a chart, or a resource of a cluster, have for a model; empty for others.

    Its program is that of the image, or the one that names its options: ``vllmArgs: [--dtype, float16]``.
    """
    words, named = words_of_manifests(), data.get("model")
    model = next((named[key] for key in words["models"] if key in named), None) if isinstance(named, dict) else named
    if not isinstance(model, str) or "/" not in model or "resources" not in data or {*words["commands"]} & data.keys():
        return ""
    sections = [pair for key, value in data.items() for pair in _sections(key, value)]
    keys = [f"{above}.{key}".casefold() for above, key, _ in sections]
    called = next((program for part, program in words["formats"].items() if any(part in key for key in keys)), "")
    program = program_of_image(image_of(data)) or called
    options = next((words_of(value) for _, key, value in sections if key in words["options"] and value), [])
    return f"{program} --model {shlex.quote(model)} {shlex.join(options)}" if program else ""


def _sections(key: str, value: Plain, above: str = "", depth: int = 3) -> Iterator[tuple[str, str, Plain]]:
    """Yield the entries of a part of a document, with the names above them."""
    yield above, key, value
    for inner, part in value.items() if isinstance(value, dict) and depth else ():
        yield from _sections(inner, part, key, depth - 1)
