"""The page of every command, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from capacity_tui.tui.cli.program import ENTRIES, PROGRAM, TOPICS
from tools.reference.commands import Command, Paragraph

_HEAD = """# Commands

Every command with its options, as `capacity-tui COMMAND --help` tells them. Written by `python -m tools.reference`.

A PLAN is a file, `-` for standard input, the name of an example or of a saved plan, or one line such as
`"llama-3.1-70b lora 8xh100 4k 50M"`. What prints data takes `--format json`, whose keys stay as they are.
Exit codes: 0 done, 1 the plan does not fit (`plan --check`) or there is no answer (`need`), 2 bad input, 3 a missing
part that was asked for by name.
"""
_COMMON = "--help"


def commands_page(commands: Sequence[Command]) -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_contents(commands), "", *(line for each in commands for line in _section(each))))


def _contents(commands: Sequence[Command]) -> Iterator[str]:
    """Yield a table of the commands of each topic."""
    topics = {entry.path: entry.topic for entry in ENTRIES}
    program, *others = commands
    yield f"[`{_words(program)}`](#{_anchor(program)}) opens the screen. Its commands by group:"
    for key, topic in TOPICS.items():
        yield ""
        yield f"**{topic.title}** (`{PROGRAM} help {key}`): {topic.about}"
        yield ""
        yield "| command | does |"
        yield "| --- | --- |"
        for command in others:
            if topics[_topmost(command, topics)] == key:
                first = command.help[0].text if command.help else ""
                yield f"| [`{_words(command)}`](#{_anchor(command)}) | {_cell(first.partition('. ')[0].rstrip('.'))} |"


def _topmost(command: Command, topics: Mapping[str, str]) -> str:
    """Return the words of the table that a command belongs to: its own, or those of the group it is in."""
    words = _words(command)
    return words if words in topics else words.rpartition(" ")[0]


def _section(command: Command) -> Iterator[str]:
    yield f"## {_words(command)}"
    yield ""
    yield f"```\n{command.path} {command.usage}\n```"
    yield ""
    for paragraph in command.help:
        yield _markdown(paragraph)
        yield ""
    options = [option for option in command.options if _COMMON not in option[0]]
    if options:
        yield "| option | |"
        yield "| --- | --- |"
        yield from (f"| `{_cell(flags)}` | {_cell(text)} |" for flags, text in options)
        yield ""


def _words(command: Command) -> str:
    """Return the words of a command behind the program's name; the program's name for the program."""
    return command.path.partition(" ")[2] or command.path


def _anchor(command: Command) -> str:
    return _words(command).replace(" ", "-")


def _markdown(paragraph: Paragraph) -> str:
    return f"```\n{paragraph.text}\n```" if paragraph.is_verbatim else _plain(paragraph.text)


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Keep what Markdown would take for markup as it is."""
    return text.replace("<", "&lt;") if "`" not in text else text
