"""The manual page, in the language of man(7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.tui.cli.program import PROGRAM
from tools.reference.commands import Command, Paragraph

ENVIRONMENT = {
    "CAPACITY_TUI_CONFIG": "the folder of settings and of your own catalogue (Linux: ~/.config/capacity-tui)",
    "CAPACITY_TUI_DATA": "the folder of saved plans, history and what was measured (~/.local/share/capacity-tui)",
    "CAPACITY_TUI_STATE": "the folder of edits that are not saved yet (~/.local/state/capacity-tui)",
    "CAPACITY_TUI_HISTORY": "where the history of runs is kept: a file, the URI of a MongoDB, or off",
    "CAPACITY_TUI_METRICS_TOKEN": "the token that whoever reads metrics from another machine must show",
    "CAPACITY_TUI_DEBUG": "set to anything: show where a mistake of the program itself arose",
    "NO_COLOR": "set to anything: no colours",
    "COLUMNS": "how wide tables are that do not go to a terminal",
}
"""What of the environment the program heeds."""
FILES = {
    "settings.toml": "settings, in the folder of settings",
    "catalog/*.yaml": "your own rows of the catalogue, there too",
    "history.sqlite": "estimates and runs, in the folder of data",
}
CODES = {
    "0": "done",
    "1": "the plan does not fit (plan --check), or the question has no answer (need)",
    "2": "bad input; one line on standard error says where, and what is allowed",
    "3": "a missing part that was asked for by name",
}
_ABOUT = "says whether a machine-learning run fits, how long it takes and what it costs"


def manual_page(commands: Sequence[Command]) -> str:
    """Return the page of the program with all of its commands."""
    program, *others = commands
    lines = [
        f'.TH {PROGRAM.upper()} 1 "" "{PROGRAM}" "User Commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_text(PROGRAM)} \\- {_text(_ABOUT)}",
        ".SH SYNOPSIS",
        f".B {_text(PROGRAM)}",
        _text(program.usage),
        ".SH DESCRIPTION",
        *_paragraphs(program.help),
        ".SH OPTIONS",
        *_options(program.options),
        ".SH COMMANDS",
        *(line for command in others for line in _command(command)),
        ".SH EXIT STATUS",
        *_options(tuple(CODES.items())),
        ".SH ENVIRONMENT",
        *_options(tuple(ENVIRONMENT.items())),
        ".SH FILES",
        *_options(tuple(FILES.items())),
    ]
    return "\n".join(lines) + "\n"


def _command(command: Command) -> Iterator[str]:
    yield f'.SS "{_text(command.path.partition(" ")[2])} {_text(command.usage)}"'
    yield from _paragraphs(command.help)
    yield from _options(tuple(option for option in command.options if "--help" not in option[0]))


def _paragraphs(paragraphs: Sequence[Paragraph]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield from (".nf", _text(paragraph.text), ".fi") if paragraph.is_verbatim else (_text(paragraph.text),)


def _options(options: Sequence[tuple[str, str]]) -> Iterator[str]:
    for written, text in options:
        yield ".TP"
        yield f".B {_text(written)}"
        yield _text(text)


def _text(text: str) -> str:
    """Return text in which nothing is a request or an escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n"))
