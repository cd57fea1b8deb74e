"""What installs an optional part of the program where it runs: a command that can be pasted as it is."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

PROGRAM = "capacity-tui"
_PIPX_FILE = "pipx_metadata.json"
"""Lies in each environment that pipx made."""
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")


def install_command(extra: str) -> str:
    """Return the command that installs what an extra needs beside this program, whatever installed the program.

    It names the packages of the extra and never the program, which no index need have.

    Args:
        extra: name of the extra, as in ``pyproject.toml``.
    """
    from importlib.metadata import requires  # noqa: PLC0415 - loaded only where something is missing

    return command_for(packages_of(extra, requires(PROGRAM) or ()), Path(sys.prefix), sys.executable)


def packages_of(extra: str, requirements: Sequence[str]) -> tuple[str, ...]:
    """Return the packages of an extra with their bounds, from the requirements of a distribution."""
    parts = (requirement.partition(";") for requirement in requirements)
    return tuple(package.strip() for package, _, marker in parts if extra in _EXTRA.findall(marker))


def command_for(packages: Sequence[str], environment: Path, python: str, has_pip: bool | None = None) -> str:
    """Return the command that installs packages into an environment.

    Args:
        packages: what to install, with bounds.
        environment: folder of the environment.
        python: its Python.
        has_pip: whether pip is installed there; by default it is looked for.
    """
    if (environment / _PIPX_FILE).exists():
        return shlex.join(("pipx", "inject", PROGRAM, *packages))
    if find_spec("pip") is not None if has_pip is None else has_pip:
        return shlex.join((python, "-m", "pip", "install", *packages))
    return shlex.join(("uv", "pip", "install", "--python", python, *packages))
