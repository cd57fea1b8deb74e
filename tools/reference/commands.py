"""The commands as the command line itself tells them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

import click

from capacity_tui.tui.cli.program import PROGRAM, group

_BLOCK = "\b"  # Before a paragraph whose lines stay as they are
_WHITE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a help text."""

    text: str  # its words
    is_verbatim: bool = False  # whether its lines stay as they are


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of them."""

    path: str  # its words, such as ``capacity-tui fleet prices``
    usage: str  # what follows them
    help: tuple[Paragraph, ...]  # what it does
    options: tuple[tuple[str, str], ...]  # how each option is written, and what it does
    is_group: bool  # whether it only has commands below it


def all_commands() -> tuple[Command, ...]:
    """Return every command, the program itself first, groups before what is below them."""
    return tuple(_commands(group, click.Context(group, info_name=PROGRAM, **group.context_settings)))


def _commands(command: click.Command, context: click.Context) -> Iterator[Command]:
    options = tuple(
        (_one_line(record[0]), _one_line(record[1]))
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None
    )
    is_group = isinstance(command, click.Group)
    usage = " ".join(command.collect_usage_pieces(context))
    yield Command(context.command_path, usage, tuple(paragraphs(command.help or "")), options, is_group)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _commands(inner, click.Context(inner, info_name=name, parent=context))


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a help text."""
    for part in inspect.cleandoc(text).split("\n\n"):
        if part.startswith(_BLOCK):
            yield Paragraph(part.removeprefix(_BLOCK).strip("\n"), is_verbatim=True)
        elif part.strip():
            yield Paragraph(_one_line(part))


def _one_line(text: str) -> str:
    return _WHITE.sub(" ", text).strip()
