"""Comments, shell commands and YAML as configuration files are written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

import yaml

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
