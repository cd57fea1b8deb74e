"""Configuration files of other tools: options by rows of ``profiles/exports.yaml``, YAML, comments, shell commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

import yaml

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.machine import Setting
from capacity_tui.engine.plan.options import tool
from capacity_tui.engine.present.frameworks.job import Job
from capacity_tui.engine.present.results import to_builtins

ExportRow: TypeAlias = str | Mapping[str, Any]
_VARIABLE = re.compile(r'"\$\{[A-Z_]+:?[^"$`\\]*\}"')  # A word that the shell is to fill in, quotes included


def exported(block: str, job: Job, **computed: object) -> dict[str, object]:
    """Return the options of a file, those left out that have no value.

    Args:
        job: whose values they name.
        computed: further values by name; one with attributes is reached into by dots.
    """
    return _options(_blocks()[block], job, computed)


def exported_arguments(block: str, job: Job, **computed: object) -> Iterator[tuple[str, ...]]:
    """Yield the options of a command with their values; what is true has none, what is false is left out."""
    for option, value in exported(block, job, **computed).items():
        if value is not False:
            yield (option,) if value is True else (option, str(value))


def exported_remarks(block: str, job: Job, **computed: object) -> Iterator[str]:
    """Yield what a file does not say of a plan, by the rows of a block."""
    yield from map(str, exported(block, job, **computed).values())


def known_values(block: str, option: str) -> Collection[str]:
    row = _blocks()[block][option]
    assert not isinstance(row, str)  # noqa: S101 - shipped data
    values: Mapping[str, object] = row["values"]
    return values.keys()


@cache
def framework_names() -> Mapping[str, Mapping[str, Any]]:
    """Return what training frameworks call what a plan says, by kind of name."""
    return parse_shipped("framework_names.yaml")


@cache
def _blocks() -> Mapping[str, Mapping[str, ExportRow]]:
    blocks: Mapping[str, Mapping[str, ExportRow]] = parse_shipped("exports.yaml")
    return blocks


def _options(rows: Mapping[str, ExportRow], job: Job, computed: Mapping[str, object]) -> dict[str, object]:
    values = {option: _written(row, job, computed) for option, row in rows.items()}
    return {option: value for option, value in values.items() if value is not None or _is_null(rows[option])}


def _is_null(row: ExportRow) -> bool:
    """Return whether a row writes an option without a value."""
    return not isinstance(row, str) and any(name in row and row[name] is None for name in ("is", "else"))


def _written(row: ExportRow, job: Job, computed: Mapping[str, object]) -> object:
    """Return what a row writes; None where it is left out."""
    if isinstance(row, str):
        return _value(row, job, computed)
    wanted, unwanted = (_conditions(row.get(name, []), job, computed) for name in ("when", "unless"))
    if not all(wanted) or any(unwanted):
        return None
    if "options" in row:
        return _options(row["options"], job, computed) or None
    if "items" in row:
        return [_options(item, job, computed) for item in row["items"]]
    value = row["is"] if "is" in row else _read(row, _value(row["of"], job, computed))
    return row["text"].format(value, job=job, **computed) if "text" in row and value is not None else value


def _conditions(rows: ExportRow | list[ExportRow], job: Job, computed: Mapping[str, object]) -> Iterator[object]:
    return (_written(row, job, computed) for row in (rows if isinstance(rows, list) else [rows]))


def _read(row: Mapping[str, Any], value: object) -> object:
    if "in" in row:
        return value in row["in"]
    if "not" in row:
        return value not in row["not"]
    if "words" in row:
        name, _, option = row["words"].partition(".")
        return tool(name).words(option).get(value, row.get("else"))
    if "values" in row:
        return row["values"].get(str(value), row.get("else"))
    return row.get("else") if value is None else value


def _value(name: str, job: Job, computed: Mapping[str, object]) -> object:
    """Return the value of a name; None where that is an empty text."""
    first, _, rest = name.partition(".")
    known, path = (computed[first], rest) if first in computed else (job, name)
    value = attrgetter(path)(known) if path else known
    return None if value == "" else value


def comment(lines: Iterable[str]) -> str:
    """Return lines as a comment of a shell script, YAML or TOML."""
    return "".join(f"# {part}\n" for line in lines for part in line.splitlines())


def command(words: Sequence[str], arguments: Iterable[Sequence[str]]) -> str:
    """Return a shell command, one option with its values a line.

    Args:
        words: the program and what stands before its options.
        arguments: an option and its values each; a value such as ``"${NAME:?what}"``, quotes included, is left to
            the shell.
    """
    lines = [" ".join(_quoted(word) for word in group) for group in (words, *arguments)]
    return " \\\n    ".join(lines) + "\n"


def script(heading: Iterable[str], remarks: Sequence[str], body: str) -> str:
    """Return a shell script that stops at the first failure."""
    return f"#!/usr/bin/env bash\n{comment(heading)}{limits(remarks)}set -euo pipefail\n\n{body}"


def limits(remarks: Sequence[str]) -> str:
    """Return what a file cannot say of a plan, as a comment; nothing if it says all."""
    return comment(["Filled in or not expressible here:", *(f"- {remark}" for remark in remarks)]) if remarks else ""


def as_yaml(heading: Iterable[str], remarks: Sequence[str], data: Mapping[str, object]) -> str:
    """Return data as YAML below a comment."""
    return comment(heading) + limits(remarks) + yaml_lines(data)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and repeats what stands in several places."""

    def ignore_aliases(self, data: object) -> bool:
        """Return that nothing is written as a reference to another place."""
        del data
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
# Numbers of YAML 1.2 that are texts in YAML 1.1, such as 1e-4: a text of theirs is quoted, for readers of either.
_NUMBER = re.compile(r"(?:[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+)$")
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))


def yaml_lines(data: Mapping[str, object]) -> str:
    """Return data as YAML in their own order."""
    return yaml.dump(to_builtins(data), Dumper=_Dumper, sort_keys=False)


def _quoted(word: str) -> str:
    return word if _VARIABLE.fullmatch(word) else shlex.quote(word)


_PRELOAD = "LD_PRELOAD"


def _preloading(library: str) -> str:
    """Return lines that preload a library where it is: the loader complains of one that is not in each program."""
    return (
        f"library=$(ldconfig -p 2>/dev/null | sed -n 's/.* => \\(.*\\/{library}[^/]*\\)$/\\1/p' | head -n 1)\n"
        f'if [ -n "$library" ]; then export {_PRELOAD}="$library"; fi\n'
        "unset library"
    )


_ENVIRONMENT_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def environment_script(settings: Sequence[Setting], remarks: Sequence[str], power_limit: str | None = None) -> str:
    """Return the settings as exports; those that are no variables as comments.

    Args:
        remarks: what the other files of the folder do not say, such as why there are none.
        power_limit: the command that keeps devices inside the plan's share of their power limit, if any does.
    """
    parts = [comment(["Source this before the run: . ./environment.sh"]), limits(remarks)]
    for setting in settings:
        if setting.name == _PRELOAD:
            parts.append(f"\n{comment([setting.reason])}{_preloading(setting.value)}\n")
        elif _ENVIRONMENT_VARIABLE.fullmatch(setting.name):
            parts.append(f"\n{comment([setting.reason])}export {setting.name}={shlex.quote(setting.value)}\n")
        else:
            parts.append(f"\n{comment([f'{setting.name}: {setting.value} ({setting.reason})'])}")
    if power_limit is not None:
        why = "An administrator keeps devices inside the plan's share of their power (watch.power_share), slower, by:"
        parts.append(f"\n{comment([why, power_limit])}")
    if not settings:
        parts.append(comment(["No variable is proposed for this hardware."]))
    return "".join(parts)
