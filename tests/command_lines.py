"""Reads command lines as the program does, without running them."""

from __future__ import annotations

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
