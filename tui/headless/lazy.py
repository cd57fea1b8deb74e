"""Groups of commands that load the module of a command when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click


class LazyGroup(click.Group):
    """Commands, each loaded when it is asked for: one need not wait for what the others import.

    Args:
        homes: the module that has each command, by the command's name.
        own: whatever a Click group takes.
    """

    def __init__(self, *, homes: Mapping[str, str], **own: Any) -> None:
        super().__init__(**own)
        self._homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted({*self._homes, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name; None where there is none: then all are loaded, to tell the nearest."""
        for name in (cmd_name,) if cmd_name in self._homes else self._homes:
            if name not in self.commands:
                self.add_command(
                    cast("click.Command", getattr(import_module(self._homes[name]), name.replace("-", "_"))), name
                )
        return super().get_command(ctx, cmd_name)


def homes_of(package: str, modules: Mapping[str, str]) -> dict[str, str]:
    """Return the full name of the module of each command, from the commands of each module of a package."""
    return {command: f"{package}.{module}" for module, commands in modules.items() for command in commands.split()}
