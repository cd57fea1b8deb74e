"""Command lines of other tools as documents: options with their values, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from capacity_tui.engine.catalog import Document, KeyPath, Plain
from capacity_tui.engine.plan.imports.shell import Word, commands
from capacity_tui.engine.plan.imports.tools import Tool, tools

LAUNCHER = "launcher"
_A_COMMAND = re.compile(
    r"^\s*(?:#!|--?[A-Za-z]|(?:export\s+)?[A-Za-z_]\w*=|(?:\S*/)?"
    r"(?:vllm|sglang|llama-server|llama-cli|llama-bench|python3?|torchrun|accelerate|deepspeed|trl|axolotl|srun|mpirun|uv|docker|exec|"
    r"nohup|CUDA_VISIBLE_DEVICES)\s+[^:=\s])",
    re.MULTILINE,
)
_NUMBER = re.compile(r"-\d+(\.\d+)?")
_OPTION = re.compile(r"--?[A-Za-z_]")
_SCRIPT = re.compile(r".*\.py")


def is_command(text: str) -> bool:
    """Whether a text is a shell script, a command or options of one."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("# ")), "")
    return _A_COMMAND.match(first) is not None


def documents(text: str, name: str) -> Iterator[tuple[Document, Tool | None]]:
    """Yield the options of each command with the tool that its program says; None where only options tell it.

    Raises:
        DocumentError: a quote is not closed.
    """
    alone: list[Word] = []
    for words in commands(text, name):
        if _OPTION.match(words[0].text):
            alone += words
            continue
        launcher, program = _programs(words)
        if launcher:
            yield _document(launcher, name), tools()[LAUNCHER]
        if program:
            yield _document(program, name), _tool(program)
    if alone:
        yield _document(alone, name), None


def _tool(words: Sequence[Word]) -> Tool | None:
    """Return the tool whose program a command starts; None for another program."""
    called = " ".join(word.text for word in _before_options(words))
    known = tools().values()
    return next((candidate for candidate in known if any(_starts(name, called) for name in candidate.programs)), None)


def _starts(program: str, called: str) -> bool:
    return re.search(rf"(^|[\s/.]){re.escape(program)}($|\s|\.)", called) is not None


def _programs(words: tuple[Word, ...]) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """Return the words of a launcher, where there is one, and of the program that it starts."""
    starts = [index for index, word in enumerate(words) if _starts_launcher(words, index, word.text)]
    if not starts:
        return (), words
    rest = range(starts[-1] + 1, len(words))
    script = next((index for index in rest if _is_program(words, index)), None)
    if script is None:
        return words[starts[-1] :], ()
    return words[starts[-1] : script], words[script:]


def _starts_launcher(words: Sequence[Word], index: int, text: str) -> bool:
    called = text.rpartition("/")[2]
    following = words[index + 1].text if index + 1 < len(words) else ""
    return (
        called in {"torchrun", "deepspeed", "torch.distributed.launch", "torch.distributed.run"}
        or (called == "accelerate" and following == "launch")
    ) and not any(_OPTION.match(word.text) and word.text not in {"-m", "-u"} for word in words[:index])


def _is_program(words: Sequence[Word], index: int) -> bool:
    text, before = words[index].text, words[index - 1].text
    return _SCRIPT.fullmatch(text) is not None or before in {"-m", "--module"}


def _before_options(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of a command before its first option; ``-m`` names a module."""
    python = bool(words) and words[0].text.rpartition("/")[2].startswith("python")
    for word in words:
        if _OPTION.match(word.text) and not (python and word.text in {"-m", "-u"}):
            return
        yield word


def _document(words: Sequence[Word], name: str) -> Document:
    """Return the options of a command; what stands alone behind the program is its ``model``."""
    data: dict[str, Plain] = {}
    lines: dict[KeyPath, int] = {}
    given = list(_before_options(words))
    if len(given) > 1 and given[-2].text in {"serve", "launch_server"}:
        data["model"], lines["model",] = _plain(given[-1]), given[-1].line
    rest = list(words[len(given) :])
    while rest:
        word = rest.pop(0)
        if not _OPTION.match(word.text):
            continue
        key, equals, value = word.text.partition("=")
        lines[key,] = word.line
        values = [Word(value, word.line)] if equals else []
        while not equals and rest and (not rest[0].text.startswith("-") or _NUMBER.fullmatch(rest[0].text)):
            values.append(rest.pop(0))
        data[key] = _plain(values[0]) if len(values) == 1 else [_plain(part) for part in values] if values else True
    return Document(data, name, lines)


def _plain(word: Word) -> Plain:
    return None if word.is_open else word.text
