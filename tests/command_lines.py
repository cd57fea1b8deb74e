"""Reads command lines as the program does, without running them, and what commands say while they run."""

from __future__ import annotations

import re
import shlex

import click

from capacity_tui.tui.cli.program import PROGRAM, group


def parsed(line: str) -> str:
    """Return what is wrong with a command line that is not run; empty where it could be."""
    command: click.Command = group
    context = None
    rest = shlex.split(line)[1:]
    try:
        while isinstance(command, click.Group) and rest:
            context = command.make_context(command.name or PROGRAM, [*rest], parent=context)
            rest = [*context._protected_args, *context.args]
            if not rest:
                return ""
            name, found, rest = command.resolve_command(context, rest)
            assert found is not None, name
            command = found
        if context is not None:
            command.make_context(command.name, rest, parent=context)
    except click.ClickException as error:
        return error.format_message()
    return ""


def without_progress(error_output: str) -> list[str]:
    """Return the lines of standard error, without how far a command was where the machine is slow."""
    return [line for line in error_output.splitlines() if not re.fullmatch(r"\d+ s: \w+", line)]
