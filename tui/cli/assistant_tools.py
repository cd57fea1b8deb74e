"""The tools that assistants are offered: commands with options that answer a question, and the files they may reach.

Names, types, choices and help of an option are written once, at its command. A schema is made of them, and arguments
become the words of a command line, so that a tool takes and refuses what the command does.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.files import typed_path
from capacity_tui.engine.record import dataclass
from capacity_tui.tui.cli.plan.plan import plan
from capacity_tui.tui.cli.plan.plan_files import validate
from capacity_tui.tui.cli.plan.search import need, search
from capacity_tui.tui.cli.run.detect import detect

LONGEST_WORD = 100_000  # Characters of an argument; systems take some more
_ESCAPE = re.compile(r"\\(?:x(?P<two>[0-9a-fA-F]{2})|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|/)")
_BETWEEN = re.compile(r"(?:https?|mongodb(?:\+srv)?)://\S*|[\s=,:{}\[\]\"'|>]+")
_LONGEST_PATH = 4096


class FolderError(CapacityError):
    """An argument that an assistant may not give."""


@dataclass(frozen=True, slots=True)
class AllowedFolders:
    """The folders whose files may be named."""

    folders: tuple[Path, ...]  # real paths

    @classmethod
    def of(cls, folders: Sequence[Path]) -> AllowedFolders:
        """Return that of some folders and of the working folder, unless that is the root of all files."""
        work = Path.cwd().resolve()
        return cls((*(() if work == Path(work.anchor) else (work,)), *(folder.resolve() for folder in folders)))

    def check(self, arguments: object) -> None:
        """Check every text in the arguments of a call."""
        for text in _texts(arguments):
            for word in dict.fromkeys((text.strip(), *_BETWEEN.split(_unescaped(text)))):
                if word.strip("/") and len(word) < _LONGEST_PATH and "\0" not in word:
                    self._check(word)

    def _check(self, word: str) -> None:
        path = typed_path(word)
        leads_away = path.is_absolute() or ".." in path.parts
        try:
            status = path.stat()
        except (OSError, ValueError):
            if not leads_away or not path.name:
                return
        else:
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                raise FolderError(f"{word[:200]} is no regular file", hint="name the file of a plan")
        real = path.resolve()
        if not any(real.is_relative_to(folder) for folder in self.folders):
            known = ", ".join(map(str, self.folders)) or "no folder"
            hint = "the user may add a folder: capacity-tui mcp --folder DIR"
            raise FolderError(f"{word[:200]} is outside of what may be read", f"that is below {known}", hint)


def check_words(words: Sequence[str]) -> None:
    """Raise FolderError where what becomes the words of a command line cannot be a word."""
    for word in words:
        if "\0" in word:
            raise FolderError("an argument has a character 0", hint="leave it out")
        if len(word.encode("utf-8", "replace")) > LONGEST_WORD:
            raise FolderError(
                f"an argument is longer than {LONGEST_WORD} bytes", hint="give the plan as an object, or name its file"
            )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


def _unescaped(text: str) -> str:
    """Return a text with characters in the place of the escapes by which YAML and JSON write them."""

    def character(match: re.Match[str]) -> str:
        code = match["two"] or match["four"] or match["eight"]
        try:
            return "/" if code is None else chr(int(code, 16))
        except (ValueError, OverflowError):
            return match[0]

    return _ESCAPE.sub(character, text)


PLAN = "plan"
_PLAN_HELP = (
    "The plan: the name of an example or of a saved plan, a file's path, a line such as "
    '"llama-3.1-70b lora 8xh100 4k 50M", or the plan itself as an object with the sections of a plan file. '
    "Without it the other arguments say the plan."
)
_NAMED = "KEY="  # How the placeholder of an option begins that takes names with values: an object says as much


def _frozen(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


class ArgumentError(CapacityError):
    """An argument of a tool that is unknown or of another type."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One command as a tool."""

    name: str  # what assistants call it
    command: click.Command
    about: str  # what it answers, in a sentence or two
    options: tuple[str, ...]  # the options that are offered, without their dashes
    takes_plan: bool = True  # whether it is asked about a plan
    fixed: tuple[str, ...] = ()  # words that every call of it has
    named: Mapping[str, str] = field(default_factory=dict)  # options offered by another name, as the name to the option
    required: tuple[str, ...] = ()  # what must be given

    def offered(self) -> dict[str, click.Option]:
        known = {
            word.lstrip("-"): option
            for option in self.command.params
            if isinstance(option, click.Option)
            for word in option.opts
        }
        return {name: known[self.named.get(name, name)] for name in self.options}


_COMMANDS = {command.name: command for command in (detect, plan, search, need, validate)}
TOOLS = tuple(
    Tool(name, _COMMANDS[row.pop("command", name)], **{key: _frozen(value) for key, value in row.items()})
    for name, row in parse_shipped(Path(__file__).with_name("tools.yaml")).items()
)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line, and what it reads on standard input."""

    words: tuple[str, ...]
    given: str = ""


def schema_of(tool: Tool) -> dict[str, object]:
    properties: dict[str, object] = {}
    if tool.takes_plan:
        properties[PLAN] = {"type": ["string", "object"], "description": _PLAN_HELP}
    properties |= {name: _property(option) for name, option in tool.offered().items()}
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(tool.required)} if tool.required else {})


def _property(option: click.Option) -> dict[str, object]:
    schema: dict[str, object] = {"description": option.help or ""}
    if option.is_flag:
        return schema | {"type": "boolean"}
    if option.multiple and (option.metavar or "").startswith(_NAMED):
        values = {"type": ["string", "number", "boolean", "array"]}
        return schema | {"type": ["object", "array"], "items": {"type": "string"}, "additionalProperties": values}
    if option.multiple:
        return schema | {"type": ["string", "array"], "items": {"type": "string"}}
    if isinstance(option.type, click.Choice):
        return schema | {"type": "string", "enum": list(option.type.choices)}
    if isinstance(option.type, click.IntRange):
        ends = {"minimum": option.type.min, "maximum": option.type.max}
        return schema | {"type": "integer"} | {name: end for name, end in ends.items() if end is not None}
    return schema | {"type": ["string", "number"]}


def command_line(tool: Tool, arguments: Mapping[str, object]) -> CommandLine:
    """Return the command line that answers a call of a tool.

    Raises:
        ArgumentError: an argument that the tool does not take, one of a type it does not take, or one too few.
    """
    offered = tool.offered()
    known = [*([PLAN] if tool.takes_plan else []), *offered]
    for name in arguments:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise ArgumentError(f"{tool.name} has no argument {name[:100]!r}", hint=hint)
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in tool.required:
        if name not in given:
            raise ArgumentError(f"{tool.name} needs {name}", hint=offered[name].help or "")
    options = [word for name, value in given.items() if name != PLAN for word in _words(name, offered[name], value)]
    command = (str(tool.command.name), *tool.fixed, "--format=json", *options)
    if PLAN not in given:
        return CommandLine(command)
    asked = given[PLAN]
    if isinstance(asked, Mapping):
        return CommandLine((*command, "--", "-"), json.dumps(asked, indent=1))
    if not isinstance(asked, str) or asked == "-":
        raise ArgumentError(f"{PLAN} is a name, a path, a line or an object")
    if "\n" in asked or asked.lstrip().startswith("{"):
        return CommandLine((*command, "--", "-"), asked)
    return CommandLine((*command, "--", asked))


def _words(name: str, option: click.Option, value: object) -> Iterable[str]:
    """Yield the words that give an option a value, or several."""
    flag = option.opts[-1]
    if option.is_flag:
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} is true or false")
        return [flag] if value else []
    if isinstance(value, Mapping) and (option.metavar or "").startswith(_NAMED):
        return [f"{flag}={key}={_text(name, item)}" for key, item in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str) and option.multiple:
        return [f"{flag}={_text(name, item)}" for item in value]
    return [f"{flag}={_text(name, value)}"]


def _text(name: str, value: object) -> str:
    """Return a value as a command takes it: several with commas."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, Sequence):
        return ",".join(_text(name, item) for item in value)
    raise ArgumentError(f"{name} is a text, a number or a list of them")
