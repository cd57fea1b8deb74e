"""Comments, shell commands, environment variables and YAML as configuration files are written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import yaml

from capacity_tui.engine.machine import Setting
from capacity_tui.engine.present.results import to_builtins

_VARIABLE = re.compile(r'"\$\{[A-Z_]+:?[^"$`\\]*\}"')
"""A word that the shell is to fill in, quotes included."""


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
    return comment(heading) + limits(remarks) + yaml.safe_dump(to_builtins(data), sort_keys=False)


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
        settings: what suits the hardware.
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
